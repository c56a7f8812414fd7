//! Verification of a charge proof.

use super::ARGUMENT;
use super::proof::{At, ChargeProof, OpeningChallenges, TableChallenges};
use super::relation::{MOST_BITS, Relation, Values, Weights};
use super::statement::{Shape, Statement};
use crate::errors::{Error, Result, rejected};
use crate::field::{Element, inner_product};
use crate::generators::List;
use crate::multilinear::eq_table;
use crate::multiscalar::Equation;
use crate::progress::{Progress, Stage};
use crate::{opening, sumcheck};

/// Rejects unless `proof` proves `statement`; the reason names the argument.
pub fn verify(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    check(statement, proof, progress).map_err(|error| match error {
        Error::Rejected(reason) => rejected(format!("{ARGUMENT}: {reason}")),
        other => other,
    })
}

fn check(statement: &Statement, proof: &[u8], progress: &dyn Progress) -> Result<()> {
    progress.report(0.0)?;
    let shape = statement.shape()?;
    let proof = ChargeProof::decode(proof, &shape)?;
    let known = statement.points()?;
    let mut transcript = statement.begin(&shape);
    // P1, V1
    let drawn = proof.commitments.challenges(&mut transcript, &shape);
    // P2
    let claim = drawn.rho * proof.commitments.mask_sum;
    let (claim, r) = sumcheck::verify(&mut transcript, &shape.degrees(), &proof.sumcheck, claim);
    let at = At::new(&shape, &r);
    // P3, V2
    let values: Vec<Element> = proof.evaluations.iter().map(Element::from).collect();
    let relation = Relation::new(&shape, statement.uses, &drawn);
    let at_r = relation
        .value(&table_values(&shape, &relation, &values), &weights(statement, &shape, &drawn, &at));
    let mask_value = Element::from(sumcheck::mask_value(&claim, &at_r.into(), &drawn.rho)?);
    let challenges = OpeningChallenges::draw(&mut transcript, &shape, &proof.evaluations);
    // P4
    let folding = opening::follow(&mut transcript, &proof.opening)?;
    progress.report(0.2)?;

    // (E1)
    let (gammas, theta) = (&challenges.gammas, challenges.theta);
    let thresholds: Element = (statement.entries.iter().zip(&at.entries))
        .map(|(entry, weight)| *weight * Element::from_integer(entry.threshold))
        .sum();
    let difference = values[shape.columns()] + thresholds * at.rows.iter().sum::<Element>();
    let opened = inner_product(gammas, &values[..shape.columns()])
        + theta * challenges.rows() * difference
        + theta.square() * challenges.mask() * mask_value;
    let factor = folding.factor();
    let mut equation = Equation::default();
    folding.add_messages(&Element::ONE, &mut equation);
    let products = folding.products(&Element::ONE, shape.opened());
    let formed = inner_product(&products, &at.form(statement, &shape, &theta));
    equation.add_generator(List::Q, 0, Element::from(challenges.x) * (formed + factor * opened));
    add_generators(&shape, &products, &mut equation);
    let commitments = &proof.commitments;
    let columns = commitments.columns.chunks(shape.bits + 1);
    for ((known, columns), weight) in known.iter().zip(columns).zip(&at.entries) {
        // B_t, S_t, Col_(t,h), Col_(t,u_0), ..
        let [before, charge] = known;
        for (point, gamma) in [charge, before].into_iter().chain(columns).zip(gammas) {
            equation.add_point(point.element, factor * *weight * *gamma);
        }
    }
    // Masks are the mask row and have that row's weight: with weight 1 they could move every value.
    let mask_row = factor * at.mask_row;
    for (point, gamma) in commitments.masks.iter().zip(gammas) {
        equation.add_point(point.element, mask_row * *gamma);
    }
    let rows = factor * challenges.rows();
    let terms = at.rows.iter().enumerate();
    equation.add_rows(statement.commitments, terms.map(|(i, weight)| (i, rows * *weight)));
    equation.add_point(commitments.difference_mask.element, rows * at.mask_row);
    equation.add_point(commitments.mask.element, factor * challenges.mask());
    equation.check(&Stage::new(progress, 0.2, 1.0))
}

/// A, G, chg/M, chg/R with their coefficients.
fn add_generators(shape: &Shape, products: &[Element], equation: &mut Equation) {
    let (at_rows, rest) = products.split_at(shape.rows);
    let (at_width, rest) = rest.split_at(shape.width());
    let (at_difference, at_mask) = rest.split_at(1);
    equation.add_positions(shape.rows, at_rows.iter().copied().enumerate());
    for (list, products) in
        [(List::G, at_width), (List::ChargeM, at_difference), (List::ChargeR, at_mask)]
    {
        for (index, product) in products.iter().enumerate() {
            equation.add_generator(list, index as u64, *product);
        }
    }
}

/// The evaluations v_b, v_c, v_h, v_u_0 .., v_Y as F takes them.
fn table_values(shape: &Shape, relation: &Relation, values: &[Element]) -> Values {
    let mut bits = [Element::ZERO; MOST_BITS];
    let mut distance = values[0] + values[2];
    let mut power = Element::ONE;
    for (k, bit) in values[3..shape.columns()].iter().enumerate() {
        bits[k] = *bit * relation.scales[k];
        distance += power * *bit;
        power = power.double();
    }
    Values {
        bits,
        charged: values[0],
        before: values[1],
        exhausted: values[2],
        difference: values[shape.columns()],
        distance,
    }
}

/// M_all(r) and M_in(r): over all places, and over the allowed ones; never over the mask row.
fn weights(statement: &Statement, shape: &Shape, drawn: &TableChallenges, at: &At) -> Weights {
    let entries = eq_table(&Element::ONE, &drawn.t, shape.entries);
    let rows = eq_table(&Element::ONE, &drawn.u, shape.rows);
    let of_rows: Vec<Element> = rows.iter().zip(&at.rows).map(|(u, r)| *u * *r).collect();
    let every: Element = of_rows.iter().sum();
    let mut weights = Weights::default();
    for (entry, (t, r)) in statement.entries.iter().zip(entries.iter().zip(&at.entries)) {
        let weight = *t * *r;
        let allowed = match entry.allowed {
            None => every,
            Some(allowed) => allowed.iter().map(|i| &of_rows[*i as usize]).sum(),
        };
        weights.all += weight * every;
        weights.inside += weight * allowed;
    }
    weights
}
