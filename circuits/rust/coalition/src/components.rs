//! Connected components that several threads join at once.

use std::sync::atomic::{AtomicU32, Ordering};

/// Union-find without locks: a root points to itself, and every other vertex to a smaller one.
///
/// Relaxed ordering suffices: each step is about one vertex, whose parent is only ever replaced by
/// a smaller vertex of the same component.
pub struct Components(Vec<AtomicU32>);

impl Components {
    /// `count` vertices, each alone.
    pub fn new(count: u32) -> Self {
        Components((0..count).map(AtomicU32::new).collect())
    }

    /// The root of a vertex; another thread may join it to a smaller one at any time.
    pub fn root(&self, mut vertex: u32) -> u32 {
        loop {
            let parent = self.parent(vertex);
            if parent == vertex {
                return vertex;
            }
            let above = self.parent(parent);
            if above != parent {
                // Paths are halved as they are walked. Who else replaced it did as well.
                let parent_of = &self.0[vertex as usize];
                let _ =
                    parent_of.compare_exchange(parent, above, Ordering::Relaxed, Ordering::Relaxed);
            }
            vertex = parent;
        }
    }

    /// Makes one component of those of two vertices.
    pub fn join(&self, a: u32, b: u32) {
        let (mut a, mut b) = (a, b);
        loop {
            (a, b) = (self.root(a), self.root(b));
            if a == b {
                return;
            }
            let (small, large) = (a.min(b), a.max(b));
            // It fails if `large` is no root any more: its new one is found in the next round.
            let joined = self.0[large as usize].compare_exchange(
                large,
                small,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if joined.is_ok() {
                return;
            }
        }
    }

    /// The smallest vertex of the component of each vertex, once nobody joins any more.
    pub fn labels(self) -> Vec<u32> {
        (0..self.0.len()).map(|vertex| self.root(vertex as u32)).collect()
    }

    fn parent(&self, vertex: u32) -> u32 {
        self.0[vertex as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn a_chain_that_all_threads_join_is_one_component() {
        let count = 1 << 16;
        let components = Components::new(count);
        // In an order without order: 40503 is odd, so every link comes once.
        (0..count).into_par_iter().for_each(|step| {
            let vertex = step.wrapping_mul(40503) % count;
            // The last four vertices and vertex 5 stay out.
            if vertex + 5 < count && vertex != 5 && vertex != 4 {
                components.join(vertex + 1, vertex);
            }
        });
        let labels = components.labels();
        for (vertex, label) in labels.iter().enumerate() {
            let expected = match vertex as u32 {
                0..=4 => 0,
                5 => 5,
                vertex if vertex + 4 < count => 6,
                vertex => vertex,
            };
            assert_eq!(*label, expected, "vertex {vertex}");
        }
    }
}
