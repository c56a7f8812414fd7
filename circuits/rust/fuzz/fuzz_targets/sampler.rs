//! Threshold tables of any bytes: refused, or samples that are look-ups within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_noise::Sampler;

fuzz_target!(|data: &[u8]| {
    let [factor @ .., levels, count] = data.first_chunk::<10>().copied().unwrap_or_default();
    let mut table = data.get(10..).unwrap_or_default().to_vec();
    if count & 1 == 1 {
        // In rising order, so that the sampler is reached.
        let mut thresholds: Vec<u128> =
            table.as_chunks().0.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect();
        thresholds.sort_unstable();
        table = thresholds.iter().flat_map(|threshold| threshold.to_le_bytes()).collect();
    }
    let factor = u64::from_le_bytes(factor) >> (count % 64);
    let levels = u32::from(levels % 12);
    let Ok(sampler) = Sampler::new(&table, factor, levels) else { return };
    let half_width = (table.len() / 32) as i128;
    let bound: i128 = (0..=levels).map(|j| half_width * i128::from(factor).pow(j)).sum();
    let samples = sampler.sample(&[count; 32], usize::from(count)).expect("few samples");
    assert_eq!(samples.len(), usize::from(count));
    assert!(samples.iter().all(|sample| i128::from(*sample).abs() <= bound));
    let fewer = sampler.sample(&[count; 32], usize::from(count) / 2).expect("few samples");
    assert_eq!(fewer, samples[..fewer.len()]);
});
