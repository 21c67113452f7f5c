//! Runs tshark, an independent reader of capture files.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

/// The fields of one frame by name; absent ones are empty.
pub type Row = BTreeMap<&'static str, String>;

/// Returns the value of each of `fields` in each frame of a capture file, with checksums verified
/// and sequence numbers as transmitted. Fails if tshark reports an error in the file.
pub fn tshark(capture: &[u8], fields: &[&'static str]) -> Vec<Row> {
    let mut file = tempfile::Builder::new().suffix(".pcapng").tempfile().unwrap();
    file.write_all(capture).unwrap();
    let mut command = Command::new("tshark");
    command.env("LC_ALL", "C");
    command.args(["-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE", "-r"]);
    command.arg(file.path());
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("this test drives tshark: apt-get install tshark");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let complaints = complaint.lines().filter(|line| !line.contains("Running as user"));
    assert_eq!(complaints.collect::<Vec<_>>(), [""; 0]);
    let rows = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| {
        fields.iter().copied().zip(line.split('\t').map(str::to_owned)).collect::<Row>()
    };
    rows.lines().map(row).collect()
}
