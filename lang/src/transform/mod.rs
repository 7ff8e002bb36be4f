//! Graph-to-graph transformations.
