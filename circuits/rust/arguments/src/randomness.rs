//! Randomness of provers and verifiers.

use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::errors::{Error, Result};
use crate::field::Element;
use crate::transcript::Transcript;

/// Deterministic generator SHA-512(key || counter), keyed afresh for every proof.
///
/// The key hashes 64 bytes of operating-system entropy, the statement and the witness
/// (spec 4.1.6): a broken entropy source alone never repeats a mask under another statement,
/// and nothing is ever reused in two proofs.
///
/// ```
/// use ragaudit_arguments::randomness::ProverRandomness;
/// use ragaudit_arguments::transcript::Transcript;
///
/// let transcript = Transcript::new("example");
/// let mut first = ProverRandomness::new(&transcript, &[0; 64])?;
/// let mut second = ProverRandomness::new(&transcript, &[0; 64])?;
/// assert_ne!(first.scalar(), second.scalar()); // fresh entropy in each
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ProverRandomness {
    key: [u8; 64],
    counter: u64,
}

impl ProverRandomness {
    /// Randomness of one proof. `transcript` has just absorbed the statement; `witness` is the
    /// SHA-512 digest of the secret input.
    pub fn new(transcript: &Transcript, witness: &[u8; 64]) -> Result<Self> {
        let mut entropy = system_entropy()?;
        let hash = Sha512::new()
            .chain_update(entropy)
            .chain_update(transcript.state())
            .chain_update(witness);
        entropy.zeroize();
        Ok(ProverRandomness { key: hash.finalize().into(), counter: 0 })
    }

    /// Randomness with no statement to bind to: blindings.
    pub fn from_system() -> Result<Self> {
        Ok(ProverRandomness { key: system_entropy()?, counter: 0 })
    }

    /// The next uniform scalar.
    pub fn scalar(&mut self) -> Scalar {
        let block = Sha512::new().chain_update(self.key).chain_update(self.counter.to_le_bytes());
        self.counter += 1;
        Scalar::from_bytes_mod_order_wide(&block.finalize().into())
    }

    /// The next `count` uniform scalars.
    pub fn scalars(&mut self, count: usize) -> Vec<Scalar> {
        (0..count).map(|_| self.scalar()).collect()
    }
}

fn system_entropy() -> Result<[u8; 64]> {
    let mut entropy = [0; 64];
    getrandom::fill(&mut entropy).map_err(|error| {
        Error::Entropy(format!("no entropy from the operating system: {error}"))
    })?;
    Ok(entropy)
}

/// A random 128-bit weight of the verifier, unpredictable to the prover.
///
/// ```
/// use ragaudit_arguments::randomness::weight;
///
/// assert_ne!(weight()?, weight()?);
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub fn weight() -> Result<Element> {
    let entropy = system_entropy()?;
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&entropy[..16]);
    Ok(Scalar::from(u128::from_le_bytes(bytes)).into())
}
