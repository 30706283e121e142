//! Sizes: what is just allowed is stored whole, one byte more is refused.

use crate::{harness::Kubectl, has};

/// Bytes of values in one ConfigMap or Secret.
const VALUES_BYTES_MAX: usize = 1_048_576;

fn create(kubectl: &Kubectl, what: &str, bytes: usize) -> crate::harness::Finished {
    // Half text, half bytes that are no text.
    kubectl.file("text", "x".repeat(bytes / 2));
    kubectl.file("bytes", vec![0xff; bytes - bytes / 2]);
    kubectl.run(&format!("create {what} big --from-file=text --from-file=bytes"))
}

each_kubectl! {
    fn a_mebibyte_of_values_is_stored_and_no_more(kubectl) {
        for (what, kind, field) in [("configmap", "ConfigMap", "[]"), ("secret generic", "Secret", "data")] {
            create(kubectl, what, VALUES_BYTES_MAX).ok();
            let object = format!("{}/big", kind.to_lowercase());
            let text = if kind == "ConfigMap" { kubectl.field(&object, ".data.text") } else { String::new() };
            assert!(kind == "Secret" || text.len() == VALUES_BYTES_MAX / 2);
            kubectl.ok(&format!("delete {object}"));
            let refused = create(kubectl, what, VALUES_BYTES_MAX + 1).refused();
            has(&refused, &[&format!("{kind} \"big\" is invalid: {field}: Too long: may not be more than 1048576 bytes")]);
        }
    }

    fn every_byte_comes_back(kubectl) {
        let all: Vec<u8> = (0..=255).collect();
        let text = "tab\there, quote\", back\\slash, e-acute \u{e9}, han \u{6f22}, clef \u{1d11e}, crlf\r\n\n  trailing \n";
        kubectl.file("all", &all);
        kubectl.file("text", text);
        kubectl.ok("create configmap bytes --from-file=all --from-file=text");
        kubectl.ok("create secret generic bytes --from-file=all --from-file=text");
        assert_eq!(kubectl.field("cm/bytes", ".data.text"), text);
        for object in ["cm/bytes", "secret/bytes"] {
            let path = if object.starts_with("cm") { ".binaryData.all" } else { ".data.all" };
            let template = format!("go-template={{{{{path} | base64decode}}}}");
            let mut command = kubectl.command(&["get", object, "-o", &template]);
            assert_eq!(command.output().expect("kubectl runs").stdout, all, "{object}");
        }
        // The same through a manifest written by the server itself.
        let manifest = kubectl.ok("get cm bytes -o yaml").replace("name: bytes", "name: copy");
        kubectl.feed("create -f -", manifest.lines().filter(|l| !l.contains("uid:") && !l.contains("resourceVersion:")).map(|l| format!("{l}\n")).collect::<String>()).ok();
        for path in [".data.text", ".binaryData.all"] {
            assert_eq!(kubectl.field("cm/copy", path), kubectl.field("cm/bytes", path));
        }
    }
}
