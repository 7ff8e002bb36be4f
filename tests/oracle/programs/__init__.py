"""Random small programs: the same one in Sheaf and in JAX."""
