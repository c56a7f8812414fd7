//! F at a point, and along a line; the challenges that weigh its claims.

use curve25519_dalek::scalar::Scalar;

use super::proof::TableChallenges;
use super::statement::Shape;
use crate::field::{Element, ProductSum, powers};

/// Most bits of a distance: those of 2B² for the largest B.
pub const MOST_BITS: usize = 25;

/// Powers of alpha and M.
pub struct Relation {
    /// Wc.
    pub bits: usize,
    /// alpha.
    alpha: Element,
    /// alpha^(k div 2) for u_k: with u_k scaled by it, u_k² - u_k needs no further product.
    pub scales: Vec<Element>,
    /// alpha^Wc, alpha^(Wc+1), alpha^(Wc+2).
    exhausted: Element,
    distance: Element,
    outside: Element,
    uses: Element,
}

/// The values of the tables at one point; `bits` are u_k, each times its scale.
#[derive(Clone, Copy)]
pub struct Values {
    /// u_k.
    pub bits: [Element; MOST_BITS],
    /// b.
    pub charged: Element,
    /// c.
    pub before: Element,
    /// h.
    pub exhausted: Element,
    /// Y.
    pub difference: Element,
    /// q + sum 2^k u_k.
    pub distance: Element,
}

impl Default for Values {
    fn default() -> Self {
        let zero = Element::ZERO;
        Values {
            bits: [zero; MOST_BITS],
            charged: zero,
            before: zero,
            exhausted: zero,
            difference: zero,
            distance: zero,
        }
    }
}

/// M_all and M_in at one point.
#[derive(Clone, Copy, Default)]
pub struct Weights {
    /// Over all places of entries and rows.
    pub all: Element,
    /// Over the allowed ones.
    pub inside: Element,
}

/// A polynomial of degree 2 by its values at 0 and 1 and its leading coefficient.
#[derive(Clone, Copy)]
struct Quadratic(Element, Element, Element);

impl Quadratic {
    /// Its values at 0, 1, 2, 3.
    fn values(&self) -> [Element; 4] {
        let Quadratic(low, high, lead) = self;
        let slope = *high - *low;
        let double = lead.double();
        // low + slope X + lead X (X - 1)
        let second = *high + slope + double;
        [*low, *high, second, second + slope + double.double()]
    }
}

impl Relation {
    /// For the challenge alpha.
    pub fn new(shape: &Shape, uses: u64, drawn: &TableChallenges) -> Self {
        let alpha = Element::from(drawn.alpha);
        let alphas = powers(&alpha, shape.bits + 3);
        Relation {
            bits: shape.bits,
            alpha,
            scales: (0..shape.bits).map(|k| alphas[k / 2]).collect(),
            exhausted: alphas[shape.bits],
            distance: alphas[shape.bits + 1],
            outside: alphas[shape.bits + 2],
            uses: Element::from_integer(uses as i64),
        }
    }

    /// 1/scale of every u_k.
    pub fn inverse_scales(&self) -> Vec<Element> {
        let inverse = Element::from(Scalar::from(self.alpha).invert());
        let inverses = powers(&inverse, self.bits);
        (0..self.bits).map(|k| inverses[k / 2]).collect()
    }

    /// F at one point.
    pub fn value(&self, values: &Values, weights: &Weights) -> Element {
        self.line([values, values], [*weights, *weights])[0]
    }

    /// F at 0, 1, 2, 3 along the line with these values at 0 and 1.
    pub fn line(&self, values: [&Values; 2], weights: [Weights; 2]) -> [Element; 4] {
        let bits = self.bit_claims(values).values();
        let inside = self.inside_claims(values).values();
        let outside = values.map(|value| self.outside * value.charged);
        let step = outside[1] - outside[0];
        let all_step = weights[1].all - weights[0].all;
        let inside_step = weights[1].inside - weights[0].inside;
        let (mut all, mut within, mut without) = (weights[0].all, weights[0].inside, outside[0]);
        std::array::from_fn(|x| {
            let mut sum = ProductSum::default();
            sum.add_product(&all, &bits[x]);
            sum.add_product(&within, &inside[x]);
            sum.add_product(&(all - within), &without);
            all += all_step;
            within += inside_step;
            without += step;
            sum.reduce()
        })
    }

    /// sum_k alpha^k (u_k² - u_k).
    fn bit_claims(&self, [low, high]: [&Values; 2]) -> Quadratic {
        let mut sums = [[ProductSum::default(); 3]; 2];
        for k in 0..self.bits {
            let [at_low, at_high, lead] = &mut sums[k % 2];
            let (low, high, scale) = (&low.bits[k], &high.bits[k], &self.scales[k]);
            at_low.add_product(low, &(*low - *scale));
            at_high.add_product(high, &(*high - *scale));
            let slope = *high - *low;
            lead.add_product(&slope, &slope);
        }
        let [at_low, at_high, lead] =
            std::array::from_fn(|i| sums[0][i].reduce() + self.alpha * sums[1][i].reduce());
        Quadratic(at_low, at_high, lead)
    }

    /// alpha^Wc h (M - c) + alpha^(Wc+1) ((2q - 1) Y - q - sum 2^k u_k).
    fn inside_claims(&self, [low, high]: [&Values; 2]) -> Quadratic {
        let sign = |value: &Values| (value.charged + value.exhausted).double() - Element::ONE;
        let at = |value: &Values| {
            let live = value.exhausted * (self.uses - value.before);
            let distance = sign(value) * value.difference - value.distance;
            self.exhausted * live + self.distance * distance
        };
        let exhausted_slope = high.exhausted - low.exhausted;
        let lead = self.distance * (sign(high) - sign(low)) * (high.difference - low.difference)
            - self.exhausted * exhausted_slope * (high.before - low.before);
        Quadratic(at(low), at(high), lead)
    }
}
