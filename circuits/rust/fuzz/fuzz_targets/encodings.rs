//! Points and scalars: what is decoded is encoded as the same bytes, or nothing is decoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragaudit_arguments::encoding::{Reader, Writer, decode_point, decode_scalar};

fuzz_target!(|data: &[u8]| {
    if let Ok(point) = decode_point(data, "point") {
        assert_eq!(data, point.bytes);
        assert_eq!(data, point.element.compress().as_bytes());
    }
    if let Ok(scalar) = decode_scalar(data, "scalar") {
        assert_eq!(data, scalar.as_bytes());
    }
    let elements = data.len() / 32;
    let Ok(mut reader) = Reader::new(data, elements) else {
        assert_ne!(data.len() % 32, 0);
        return;
    };
    let half = elements / 2;
    if let (Ok(points), Ok(scalars)) = (reader.points(half), reader.scalars(elements - half)) {
        reader.finish().expect("as many elements as were asked for");
        let mut writer = Writer::default();
        writer.points(&points);
        writer.scalars(&scalars);
        assert_eq!(writer.finish(), data);
    }
});
