//! What kiwigrid's k8s-sidecar does with an object and we do not do otherwise.

use std::path::{Component, Path, PathBuf};

use hotmap_volume::PayloadPath;

use crate::sync::merge::shown;
use crate::sync::object::Document;

/// The end of keys whose value k8s-sidecar takes for the address of the content.
const URL_SUFFIX: &str = ".url";

/// Where an object's files go, as k8s-sidecar has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SidecarRules {
    /// The annotation that may name another folder (`FOLDER_ANNOTATION`).
    pub(crate) annotation: Option<String>,
    /// The folder itself (`FOLDER`): an absolute value has to lie in it.
    pub(crate) folder: PathBuf,
    /// Whether file names say which object they are of (`UNIQUE_FILENAMES`).
    pub(crate) unique_names: bool,
    /// Whether keys are left out whose value k8s-sidecar takes for the address of the content.
    pub(crate) refuses_urls: bool,
}

impl SidecarRules {
    /// The directory beneath the folder in which the object's files go; or why the object is left out.
    pub(crate) fn subdirectory(&self, document: &Document) -> Result<Option<String>, String> {
        let annotation = self.annotation.as_ref();
        let Some(value) = annotation.and_then(|annotation| document.annotations.get(annotation)) else {
            return Ok(None);
        };
        let beneath = Path::new(value);
        let beneath = if beneath.is_absolute() {
            beneath
                .strip_prefix(&self.folder)
                .map_err(|_| self.outside(document, value))?
        } else {
            beneath
        };
        let is_folder_itself = beneath
            .components()
            .all(|component| component == Component::CurDir);
        if is_folder_itself {
            return Ok(None);
        }
        let path = beneath
            .to_str()
            .and_then(|beneath| beneath.parse::<PayloadPath>().ok());
        path.map(|path| Some(path.as_str().to_owned()))
            .ok_or_else(|| self.outside(document, value))
    }

    /// The name of a key's file; or why there is none.
    pub(crate) fn file_name(&self, document: &Document, key: &str) -> Result<String, String> {
        let version = &document.version;
        if self.refuses_urls && key.ends_with(URL_SUFFIX) {
            return Err(format!(
                "key {key:?} of {} is left out: content is not fetched from a URL; put it into the object",
                shown(version)
            ));
        }
        Ok(if self.unique_names {
            let (namespace, kind, name) = (&version.namespace, version.kind, &version.name);
            format!("namespace_{namespace}.{kind}_{name}.{key}")
        } else {
            key.to_owned()
        })
    }

    fn outside(&self, document: &Document, value: &str) -> String {
        format!(
            "{} is left out: its annotation {} leads to {value:?}, which is not beneath {}",
            shown(&document.version),
            self.annotation.as_deref().unwrap_or_default(),
            self.folder.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::object::ObjectKind;

    fn document(annotation: Option<&str>) -> Document {
        let json = serde_json::json!({"metadata": {
            "namespace": "shop", "name": "app",
            "annotations": annotation.map(|value| serde_json::json!({"folder": value})),
        }});
        Document::parse(ObjectKind::ConfigMap, json.to_string().as_bytes()).expect("an object")
    }

    fn rules(unique_names: bool) -> SidecarRules {
        SidecarRules {
            annotation: Some("folder".to_owned()),
            folder: "/tmp/dashboards".into(),
            unique_names,
            refuses_urls: true,
        }
    }

    #[test]
    fn an_annotation_moves_files_within_the_folder_only() {
        for (annotation, expected) in [
            (None, Ok(None)),
            (Some("team"), Ok(Some("team"))),
            (Some("./team/a/"), Ok(Some("team/a"))),
            (Some("/tmp/dashboards/team"), Ok(Some("team"))),
            (Some("/tmp/dashboards/"), Ok(None)),
            (Some("."), Ok(None)),
            (Some("/etc"), Err(())),
            (Some("/tmp/dashboards/../x"), Err(())),
            (Some("../x"), Err(())),
            (Some("a/../../x"), Err(())),
            (Some("/tmp/dashboardsx"), Err(())),
            (Some("..data"), Err(())),
        ] {
            let found = rules(false).subdirectory(&document(annotation)).map_err(drop);
            assert_eq!(
                found,
                expected.map(|path| path.map(str::to_owned)),
                "{annotation:?}"
            );
        }
        let error = rules(false)
            .subdirectory(&document(Some("/etc")))
            .expect_err("outside");
        assert_eq!(
            error,
            "shop/configmap/app is left out: its annotation folder leads to \"/etc\", which is not beneath /tmp/dashboards"
        );
    }

    #[test]
    fn names_may_say_whose_they_are_and_urls_are_not_fetched() {
        let document = document(None);
        assert_eq!(
            rules(false).file_name(&document, "a.json").as_deref(),
            Ok("a.json")
        );
        assert_eq!(
            rules(true).file_name(&document, "a.json").as_deref(),
            Ok("namespace_shop.configmap_app.a.json")
        );
        assert!(rules(false).file_name(&document, "a.json.url").is_err());
    }
}
