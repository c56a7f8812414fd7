//! Dishonest provers.
