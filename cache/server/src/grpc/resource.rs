//! `ByteStream` resource names of blobs.

use tonic::Status;

use sheaf_foundation::Digest;

/// A parsed resource name, without the instance before it and the client's suffix after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource {
    pub digest: Digest,
    pub size: u64,
    /// True if the transferred bytes are compressed.
    pub zstd: bool,
}

impl Resource {
    /// `[INSTANCE/]blobs/HASH/SIZE`, or with `compressed-blobs/zstd`.
    pub fn read(name: &str) -> Result<Self, Status> {
        let parts: Vec<&str> = name.split('/').collect();
        let blobs = |index: &usize| matches!(parts[*index], "blobs" | "compressed-blobs");
        let index = (0..parts.len()).find(blobs);
        index.and_then(|index| Self::parse(&parts[index..])).ok_or_else(|| wrong(name))
    }

    /// `[INSTANCE/]uploads/UUID/blobs/HASH/SIZE[/...]`, or with `compressed-blobs/zstd`.
    pub fn write(name: &str) -> Result<Self, Status> {
        let parts: Vec<&str> = name.split('/').collect();
        let index = parts.iter().position(|part| *part == "uploads");
        index.and_then(|index| Self::parse(parts.get(index + 2..)?)).ok_or_else(|| wrong(name))
    }

    fn parse(parts: &[&str]) -> Option<Self> {
        let (zstd, hash, size) = match parts {
            ["blobs", hash, size, ..] => (false, hash, size),
            ["compressed-blobs", "zstd", hash, size, ..] => (true, hash, size),
            _ => return None,
        };
        Some(Self { digest: hash.parse().ok()?, size: size.parse().ok()?, zstd })
    }
}

fn wrong(name: &str) -> Status {
    let name: String = name.chars().take(200).collect();
    Status::invalid_argument(format!(
        "`{name}` names no blob: names are [INSTANCE/][uploads/UUID/]blobs/SHA256/SIZE or \
         [INSTANCE/][uploads/UUID/]compressed-blobs/zstd/SHA256/SIZE"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        let digest = Digest::of(b"abc");
        let plain = Resource { digest, size: 3, zstd: false };
        let zstd = Resource { digest, size: 3, zstd: true };
        for instance in ["", "main/", "a/b/c/"] {
            assert_eq!(Resource::read(&format!("{instance}blobs/{digest}/3")).unwrap(), plain);
            let name = format!("{instance}compressed-blobs/zstd/{digest}/3");
            assert_eq!(Resource::read(&name).unwrap(), zstd);
            assert_eq!(
                Resource::write(&format!("{instance}uploads/u-1/blobs/{digest}/3/x/y")).unwrap(),
                plain
            );
            let name = format!("{instance}uploads/u-1/compressed-blobs/zstd/{digest}/3");
            assert_eq!(Resource::write(&name).unwrap(), zstd);
        }
        for wrong in [
            String::new(),
            "blobs".into(),
            format!("blobs/{digest}"),
            format!("blobs/{digest}/-3"),
            format!("blobs/{digest}/99999999999999999999"),
            format!("blobs/../{digest}/3"),
            format!("compressed-blobs/deflate/{digest}/3"),
            "blobs/abc/3".into(),
            "uploads".into(),
            "uploads/u".into(),
        ] {
            assert!(Resource::read(&wrong).is_err(), "{wrong}");
            assert!(Resource::write(&wrong).is_err(), "{wrong}");
        }
        assert!(Resource::write(&format!("blobs/{digest}/3")).is_err());
    }
}
