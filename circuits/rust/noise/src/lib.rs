//! The discrete Gaussian sampler.
