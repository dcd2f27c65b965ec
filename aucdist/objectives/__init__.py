"""Objectives: their values, gradients and lower bounds."""
