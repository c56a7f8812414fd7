//! What this process has used, where Linux reports it.

use std::fs;

/// Makes [`peak_memory`] start again from now. Without effect where the kernel does not allow it, in
/// which case [`peak_memory`] covers the whole run: too much, never too little.
pub fn reset_peak_memory() {
    // Writing 5 resets VmHWM (proc(5), /proc/pid/clear_refs).
    drop(fs::write("/proc/self/clear_refs", "5"));
}

/// The largest resident size since [`reset_peak_memory`], in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Processor seconds used so far by all threads, those that have ended included.
pub fn processor_seconds() -> Option<f64> {
    // The kernel reports utime and stime, the fields 14 and 15, in hundredths of a second on every
    // architecture (proc(5), USER_HZ). The name in field 2 may contain spaces but ends with ')'.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / 100.0)
}
