"""Objectives: value, gradient and what a certificate needs."""
