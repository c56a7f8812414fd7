//! The masked sumcheck (spec 4.5).

use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroize;

use crate::errors::{Result, rejected};
use crate::field::Element;
use crate::progress::Progress;
use crate::randomness::ProverRandomness;
use crate::scalars::{evaluate, interpolate};
use crate::transcript::Transcript;

/// A polynomial whose hypercube sum is claimed, seen one variable at a time.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
/// use ragaudit_arguments::Result;
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::progress::Silent;
/// use ragaudit_arguments::randomness::ProverRandomness;
/// use ragaudit_arguments::scalars::evaluate;
/// use ragaudit_arguments::sumcheck::{self, Mask, RoundPolynomial};
/// use ragaudit_arguments::transcript::Transcript;
///
/// /// F(x) = x², which sums to 1 over {0, 1}.
/// struct Square;
///
/// impl RoundPolynomial for Square {
///     fn values(&self) -> Vec<Element> {
///         [0, 1, 4].map(Element::from_integer).to_vec()
///     }
///     fn bind(&mut self, _r: &Element) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// let mut transcript = Transcript::new("example");
/// let mask = Mask::random(&[2], &mut ProverRandomness::from_system()?);
/// let rho = transcript.scalar("rho");
/// let mut prover = transcript.clone();
/// let (messages, r) = sumcheck::prove(&mut prover, &mut Square, &mask, &rho, &Silent)?;
///
/// let claim = Scalar::ONE + rho * mask.sum();
/// let (claim, same) = sumcheck::verify(&mut transcript, &[2], &messages, claim);
/// let g = sumcheck::mask_value(&claim, &(r[0] * r[0]), &rho)?;
/// assert_eq!(r, same);
/// assert_eq!(g, evaluate(mask.coefficients(), &r[0]));
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub trait RoundPolynomial {
    /// Values at 0, 1, 2, .. of the sum over all later variables as a polynomial of the next one;
    /// as many as its degree plus one.
    fn values(&self) -> Vec<Element>;
    /// Binds the next variable.
    fn bind(&mut self, r: &Element) -> Result<()>;
}

/// The mask g(x) = a_0 + sum_k sum_e a_(k,e) x_k^e.
///
/// ```
/// use ragaudit_arguments::randomness::ProverRandomness;
/// use ragaudit_arguments::scalars::inner_product;
/// use ragaudit_arguments::sumcheck::{Mask, mask_form};
/// use curve25519_dalek::scalar::Scalar;
///
/// let mask = Mask::random(&[3], &mut ProverRandomness::from_system()?);
/// let at = |x| inner_product(mask.coefficients(), &mask_form(&[3], &[x]));
/// assert_eq!(mask.sum(), at(Scalar::ZERO) + at(Scalar::ONE));
/// # Ok::<(), ragaudit_arguments::Error>(())
/// ```
pub struct Mask {
    degrees: Vec<usize>,
    coefficients: Vec<Scalar>,
}

impl Mask {
    /// A random mask for variables of these degrees.
    pub fn random(degrees: &[usize], randomness: &mut ProverRandomness) -> Self {
        let coefficients = randomness.scalars(1 + degrees.iter().sum::<usize>());
        Mask { degrees: degrees.to_vec(), coefficients }
    }

    /// a_0, then variable by variable, exponents rising.
    pub fn coefficients(&self) -> &[Scalar] {
        &self.coefficients
    }

    /// G_sum: the sum of g over the hypercube.
    pub fn sum(&self) -> Scalar {
        let variables = self.degrees.len();
        let rest: Scalar = self.coefficients[1..].iter().sum();
        power_of_two(variables) * self.coefficients[0] + power_of_two(variables - 1) * rest
    }

    /// The round polynomial of the variable after those bound to `point`.
    fn round(&self, point: &[Scalar]) -> Vec<Scalar> {
        let current = point.len();
        let later = self.degrees.len() - current - 1;
        let scale = power_of_two(later);
        let bound: Scalar =
            (0..current).map(|k| evaluate(self.variable(k), &point[k]) * point[k]).sum();
        let mut constant = scale * (self.coefficients[0] + bound);
        if later > 0 {
            let open: Scalar =
                (current + 1..self.degrees.len()).flat_map(|k| self.variable(k)).sum();
            constant += power_of_two(later - 1) * open;
        }
        let own = self.variable(current).iter().map(|coefficient| scale * coefficient);
        std::iter::once(constant).chain(own).collect()
    }

    /// a_(k,1), a_(k,2), .. of variable k (from 0).
    fn variable(&self, k: usize) -> &[Scalar] {
        let start = 1 + self.degrees[..k].iter().sum::<usize>();
        &self.coefficients[start..start + self.degrees[k]]
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        self.coefficients.zeroize();
    }
}

fn power_of_two(exponent: usize) -> Scalar {
    crate::scalars::from_integer(1i128 << exponent)
}

/// mask(r) = (1, r_1, .., r_1^deg_1, r_2, ..): the linear form that evaluates the mask at r.
///
/// ```
/// use curve25519_dalek::scalar::Scalar;
///
/// let form = ragaudit_arguments::sumcheck::mask_form(&[2, 1], &[3u8, 5].map(Scalar::from));
/// assert_eq!(form, [1u8, 3, 9, 5].map(Scalar::from));
/// ```
pub fn mask_form(degrees: &[usize], point: &[Scalar]) -> Vec<Scalar> {
    let mut form = vec![Scalar::ONE];
    for (degree, r) in degrees.iter().zip(point) {
        let mut power = Scalar::ONE;
        for _ in 0..*degree {
            power *= r;
            form.push(power);
        }
    }
    form
}

/// Scalars in the messages of a sumcheck with these degrees.
///
/// ```
/// assert_eq!(ragaudit_arguments::sumcheck::message_length(&[3, 3, 2]), 8);
/// ```
pub fn message_length(degrees: &[usize]) -> usize {
    degrees.iter().sum()
}

/// Runs the prover on F + rho g; returns (messages, point).
///
/// Steps 1 and 2 of each round are those of spec 4.5.
pub fn prove(
    transcript: &mut Transcript,
    polynomial: &mut dyn RoundPolynomial,
    mask: &Mask,
    rho: &Scalar,
    progress: &dyn Progress,
) -> Result<(Vec<Scalar>, Vec<Scalar>)> {
    let mut messages = Vec::new();
    let mut point = Vec::new();
    for round in 0..mask.degrees.len() {
        // Every round halves the tables.
        progress.report(1.0 - 0.5f64.powi(round as i32))?;
        // 1: c_0, c_2, .. of p_k
        let values: Vec<Scalar> = polynomial.values().iter().map(Scalar::from).collect();
        let masked: Vec<Scalar> = interpolate(&values)
            .iter()
            .zip(mask.round(&point))
            .map(|(own, mask)| own + rho * mask)
            .collect();
        let sent: Vec<Scalar> =
            std::iter::once(masked[0]).chain(masked[2..].iter().copied()).collect();
        // 2: r_k
        let r = round_challenge(transcript, &sent);
        polynomial.bind(&Element::from(r))?;
        messages.extend(sent);
        point.push(r);
    }
    Ok((messages, point))
}

/// Follows the messages from `claim`; returns (final claim, point). Nothing can fail here: the
/// chain is checked by the opening.
pub fn verify(
    transcript: &mut Transcript,
    degrees: &[usize],
    messages: &[Scalar],
    claim: Scalar,
) -> (Scalar, Vec<Scalar>) {
    let mut claim = claim;
    let mut point = Vec::new();
    let mut rest = messages;
    for degree in degrees {
        // 1: c_0, c_2, ..
        let (sent, later) = rest.split_at(*degree);
        rest = later;
        // 2: r_k, c_1, claim_k
        let r = round_challenge(transcript, sent);
        let higher: Scalar = sent[1..].iter().sum();
        let linear = claim - sent[0] - sent[0] - higher;
        let coefficients: Vec<Scalar> =
            [sent[0], linear].into_iter().chain(sent[1..].iter().copied()).collect();
        claim = evaluate(&coefficients, &r);
        point.push(r);
    }
    (claim, point)
}

/// c_0, c_2, .., c_deg are absorbed, then the variable's challenge is drawn.
fn round_challenge(transcript: &mut Transcript, sent: &[Scalar]) -> Scalar {
    sent.iter().for_each(|coefficient| transcript.absorb_scalar("round", coefficient));
    transcript.scalar("point")
}

/// v_g = (claim - F(r)) / rho: what the mask must evaluate to.
pub fn mask_value(claim: &Scalar, polynomial_value: &Scalar, rho: &Scalar) -> Result<Scalar> {
    if *rho == Scalar::ZERO {
        return Err(rejected("challenge rho is zero"));
    }
    Ok((claim - polynomial_value) * rho.invert())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It has probability 1/l; the mask then hides nothing and binds nothing.
    #[test]
    fn a_mixing_challenge_of_zero_is_refused() {
        let value = |rho| mask_value(&Scalar::from(5u8), &Scalar::ONE, &rho);
        assert_eq!(value(Scalar::ZERO), Err(rejected("challenge rho is zero")));
        assert_eq!(value(Scalar::from(2u8)), Ok(Scalar::from(2u8)));
    }

    #[test]
    fn the_mask_sums_and_rounds_are_those_of_its_polynomial() {
        let degrees = [3, 2, 3];
        let mut randomness = ProverRandomness::from_system().unwrap();
        let mask = Mask::random(&degrees, &mut randomness);
        let value = |point: &[Scalar]| {
            crate::scalars::inner_product(mask.coefficients(), &mask_form(&degrees, point))
        };
        let bit = |i: usize, k: usize| Scalar::from(((i >> k) & 1) as u64);
        let total: Scalar = (0..8).map(|i| value(&[bit(i, 0), bit(i, 1), bit(i, 2)])).sum();
        assert_eq!(mask.sum(), total);
        let r = randomness.scalars(3);
        let x = randomness.scalar();
        let first: Scalar = (0..4).map(|i| value(&[x, bit(i, 0), bit(i, 1)])).sum();
        assert_eq!(evaluate(&mask.round(&[]), &x), first);
        let second: Scalar = (0..2).map(|i| value(&[r[0], x, bit(i, 0)])).sum();
        assert_eq!(evaluate(&mask.round(&r[..1]), &x), second);
        assert_eq!(evaluate(&mask.round(&r[..2]), &x), value(&[r[0], r[1], x]));
    }
}
