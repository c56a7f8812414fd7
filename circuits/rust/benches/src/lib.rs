//! See `benches/arguments.rs`; run with `cargo bench -p ragaudit-benches`.
