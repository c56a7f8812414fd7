//! The Fiat-Shamir transcript (spec 4.3).

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};
use sha3::{
    Shake256,
    digest::{ExtendableOutput, Update, XofReader},
};

/// Running state: everything the verifier knows so far, hashed.
///
/// ```
/// use ragaudit_arguments::transcript::Transcript;
///
/// let (mut prover, mut verifier) = (Transcript::new("example"), Transcript::new("example"));
/// prover.absorb("C", b"commitment");
/// verifier.absorb("C", b"commitment");
/// assert_eq!(prover.scalar("x"), verifier.scalar("x"));
/// verifier.absorb("C", b"another");
/// assert_ne!(prover.scalar("y"), verifier.scalar("y"));
/// assert_eq!(prover.bits("b", 12).len(), 2);
/// ```
#[derive(Clone)]
pub struct Transcript {
    state: [u8; 64],
    /// A tag whose next scalars are zero, which no transcript of a test would draw.
    #[cfg(test)]
    zero: Option<&'static str>,
}

impl Transcript {
    /// A transcript of the named argument, e.g. `selection/v1`.
    pub fn new(argument: &str) -> Self {
        let state = Sha512::digest(b"ragaudit/transcript/v1").into();
        let mut transcript = Transcript {
            state,
            #[cfg(test)]
            zero: None,
        };
        transcript.absorb("argument", argument.as_bytes());
        transcript
    }

    /// Absorbs one tagged message.
    pub fn absorb(&mut self, tag: &str, message: &[u8]) {
        let mut hash = self.tagged(0x01, tag);
        Digest::update(&mut hash, (message.len() as u64).to_le_bytes());
        Digest::update(&mut hash, message);
        self.state = hash.finalize().into();
    }

    /// Absorbs a scalar as its 32 canonical bytes.
    pub fn absorb_scalar(&mut self, tag: &str, scalar: &Scalar) {
        self.absorb(tag, scalar.as_bytes());
    }

    /// A uniform scalar challenge named `tag`.
    pub fn scalar(&mut self, tag: &str) -> Scalar {
        self.squeeze(tag);
        #[cfg(test)]
        if self.zero == Some(tag) {
            return Scalar::ZERO;
        }
        let mut hash = Sha512::new();
        Digest::update(&mut hash, [0x03]);
        Digest::update(&mut hash, self.state);
        Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
    }

    /// `count` challenge bits, packed: bit i is `(bytes[i >> 3] >> (i & 7)) & 1`.
    pub fn bits(&mut self, tag: &str, count: usize) -> Vec<u8> {
        self.squeeze(tag);
        let mut hash = Shake256::default();
        hash.update(&[0x04]);
        hash.update(&self.state);
        let mut bytes = vec![0; count.div_ceil(8)];
        hash.finalize_xof().read(&mut bytes);
        bytes
    }

    /// The current state, for the prover's randomness and for known-answer tests.
    pub fn state(&self) -> &[u8; 64] {
        &self.state
    }

    /// A transcript that draws zero for this challenge.
    #[cfg(test)]
    pub fn drawing_zero(tag: &'static str) -> Self {
        Transcript { zero: Some(tag), ..Transcript::new("test") }
    }

    fn squeeze(&mut self, tag: &str) {
        self.state = self.tagged(0x02, tag).finalize().into();
    }

    fn tagged(&self, kind: u8, tag: &str) -> Sha512 {
        let mut hash = Sha512::new();
        Digest::update(&mut hash, [kind]);
        Digest::update(&mut hash, self.state);
        Digest::update(&mut hash, (tag.len() as u16).to_le_bytes());
        Digest::update(&mut hash, tag.as_bytes());
        hash
    }
}
