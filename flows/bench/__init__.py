"""Benchmarks of our code and its peers on one machine (`aucdist bench`); `suites` lists them."""
