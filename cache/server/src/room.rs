//! Weighted limits on concurrency, of which clients without a token get half.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::access::Pass;

/// A limited resource: connections, transfers, bytes of messages. Clones share it.
#[derive(Clone)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    /// The share of clients without a token, if others have tokens.
    anonymous: Arc<Semaphore>,
    units: u32,
    wait: Duration,
}

/// A permit for units, returned on drop.
#[derive(Debug)]
pub(crate) struct Place {
    _all: OwnedSemaphorePermit,
    _anonymous: Option<OwnedSemaphorePermit>,
}

/// No room within the maximum wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server has no room at the moment: try again later")]
pub(crate) struct Full;

impl Room {
    /// Room for `units`; requests wait for it up to `wait`.
    pub fn new(units: usize, wait: Duration) -> Self {
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(Semaphore::MAX_PERMITS as u32).max(1);
        Self {
            all: Semaphore::new(units as usize).into(),
            anonymous: Semaphore::new(units.div_ceil(2) as usize).into(),
            units,
            wait,
        }
    }

    /// Waits for `units`. A request for more than the maximum gets the maximum.
    pub async fn take(&self, units: u32, pass: Pass) -> Result<Place, Full> {
        let most = if pass.anonymous { self.units.div_ceil(2) } else { self.units };
        let units = units.clamp(1, most);
        let taken = async {
            let anonymous = if pass.anonymous {
                Some(self.anonymous.clone().acquire_many_owned(units).await.map_err(|_| Full)?)
            } else {
                None
            };
            let all = self.all.clone().acquire_many_owned(units).await.map_err(|_| Full)?;
            Ok(Place { _all: all, _anonymous: anonymous })
        };
        timeout(self.wait, taken).await.map_err(|_| Full)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Role;

    const KNOWN: Pass = Pass { role: Role::Read, anonymous: false };
    const ANONYMOUS: Pass = Pass { role: Role::Read, anonymous: true };

    #[tokio::test]
    async fn those_without_a_token_leave_room() {
        let room = Room::new(4, Duration::from_millis(50));
        let taken = [room.take(1, ANONYMOUS).await.unwrap(), room.take(1, ANONYMOUS).await.unwrap()];
        assert_eq!(room.take(1, ANONYMOUS).await.unwrap_err(), Full);
        let known = room.take(2, KNOWN).await.unwrap();
        assert_eq!(room.take(1, KNOWN).await.unwrap_err(), Full);
        drop(known);
        assert_eq!(room.take(1, ANONYMOUS).await.unwrap_err(), Full);
        drop(taken);
        room.take(1, ANONYMOUS).await.unwrap();
    }

    #[tokio::test]
    async fn more_than_there_is_means_all() {
        let room = Room::new(4, Duration::from_millis(50));
        let all = room.take(1_000_000, KNOWN).await.unwrap();
        assert_eq!(room.take(1, KNOWN).await.unwrap_err(), Full);
        drop(all);
        room.take(4, KNOWN).await.unwrap();
    }
}
