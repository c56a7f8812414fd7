//! Reading the shared known answers.
#![allow(dead_code, clippy::unwrap_used)]

use ragaudit_arguments::index::{self, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection::{Instance, Ties};
use ragaudit_arguments::{Result, SQUARED_NORM};
use serde_json::Value;

pub fn load(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vectors/");
    let text = std::fs::read_to_string(format!("{folder}{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

pub fn array(value: &Value) -> [u8; 32] {
    bytes(value).try_into().unwrap()
}

pub fn integers<T: TryFrom<i64>>(value: &Value) -> Vec<T>
where
    T::Error: std::fmt::Debug,
{
    let list = value.as_array().unwrap();
    list.iter().map(|entry| T::try_from(entry.as_i64().unwrap()).unwrap()).collect()
}

pub fn concatenated(value: &Value) -> Vec<u8> {
    value.as_array().unwrap().iter().flat_map(bytes).collect()
}

/// A selection case with its own copies of everything.
pub struct Case {
    pub name: String,
    pub accept: bool,
    pub proof: Vec<u8>,
    pub commitments: Vec<u8>,
    pub query: Vec<i16>,
    pub noise: Vec<i64>,
    pub allowed: Option<Vec<u64>>,
    pub ties: Ties,
    pub value: Value,
}

impl Case {
    pub fn instance(&self) -> Instance<'_> {
        Instance {
            context: array(&self.value["context"]),
            rows: self.noise.len() as u64,
            commitments: &self.commitments,
            query: &self.query,
            noise: &self.noise,
            top_k: self.value["K"].as_u64().unwrap(),
            allowed: self.allowed.as_deref(),
            squared_norm: self.value["B2"].as_u64().unwrap().try_into().unwrap(),
            ties: self.ties,
            selection: array(&self.value["B_sel"]),
        }
    }
}

pub fn selection_cases(file: &str) -> Vec<Case> {
    let loaded = load(file);
    let kept = loaded["argument"] == "selection-ties/v1";
    let ties = if kept { Ties::Kept } else { Ties::Dropped };
    loaded["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| Case {
            name: value["name"].as_str().unwrap().to_owned(),
            accept: value["expect"] == "accept",
            proof: bytes(&value["proof"]),
            commitments: concatenated(&value["C"]),
            query: integers(&value["e"]),
            noise: integers(&value["z"]),
            allowed: value["allowed"].as_array().map(|_| integers(&value["allowed"])),
            ties,
            value: value.clone(),
        })
        .collect()
}

/// Whether the index argument of this case is accepted.
pub fn judged(case: &Value) -> Result<()> {
    let commitments = match &case["C"] {
        Value::String(_) => bytes(&case["C"]),
        list => concatenated(list),
    };
    let statement = Statement::new(
        array(&case["context"]),
        case["N"].as_u64().unwrap(),
        case["d"].as_u64().unwrap(),
        case["B2"].as_u64().unwrap_or(SQUARED_NORM.into()).try_into().unwrap(),
        &commitments,
    )?;
    index::verify(&statement, &bytes(&case["proof"]), &Silent)
}
