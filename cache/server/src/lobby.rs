//! The queue of connections without an admitted request.
//!
//! A bare connection costs a server little, and must not block others: the lobby is small and time in it short, and if
//! it is full a new connection evicts an older one. The victim is the oldest connection of the address with the most
//! connections, so that one address cannot evict the others. Before that the new one waits a moment: in a burst of
//! clients, earlier ones are admitted meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, OnceCell, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::access::Pass;
use super::room::{Full, Place, Room};

/// Delay before a new connection evicts another one.
const PATIENCE: Duration = Duration::from_millis(500);

/// The lobby, and the room behind it. Cheap to clone: clones share the state.
#[derive(Clone)]
pub(crate) struct Lobby {
    waiting: Arc<Mutex<Waiting>>,
    room: Room,
    capacity: usize,
    /// Number of connections that may wait for a place in the lobby.
    patient: Arc<Semaphore>,
    /// Notified when a connection leaves.
    left: Arc<Notify>,
    /// Number of connections, in the lobby and admitted.
    open: Gauge,
}

#[derive(Default)]
struct Waiting {
    arrivals: u64,
    /// Oldest to newest.
    guests: BTreeMap<u64, Stay>,
}

/// A connection in the lobby.
struct Stay {
    address: IpAddr,
    /// A request of it is authorised and only waits for room: it is not evicted.
    is_known: bool,
    put_out: oneshot::Sender<()>,
}

/// A connection. It is in the lobby until admitted; dropping it leaves the lobby.
pub(crate) struct Guest {
    lobby: Lobby,
    number: u64,
    place: OnceCell<Place>,
}

/// Signals eviction to a connection; ends with an error once the connection is admitted.
pub(crate) type PutOut = oneshot::Receiver<()>;

impl Lobby {
    /// A lobby for a room of `connections`, with half as many places; as many as in the room may wait for a place.
    pub fn new(connections: usize, wait: Duration, open: Gauge) -> Self {
        let capacity = connections.div_ceil(2);
        Self {
            waiting: Arc::default(),
            room: Room::new(connections, wait),
            capacity,
            patient: Semaphore::new(connections.min(Semaphore::MAX_PERMITS)).into(),
            left: Arc::default(),
            open,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection from `address` as soon as there is a place or an older one can be evicted; `None` if all in
    /// the lobby are authorised.
    pub async fn enter(&self, address: IpAddr) -> Option<(Arc<Guest>, PutOut)> {
        let address = network(address);
        if let Ok(_patience) = self.patient.try_acquire() {
            let end = Instant::now() + PATIENCE;
            loop {
                let left = self.left.notified();
                if let Some(entered) = self.try_enter(address, false) {
                    return Some(entered);
                }
                if timeout_at(end, left).await.is_err() {
                    break;
                }
            }
        }
        self.try_enter(address, true)
    }

    /// Takes a connection if there is a place; `hard` evicts another to make one.
    fn try_enter(&self, address: IpAddr, hard: bool) -> Option<(Arc<Guest>, PutOut)> {
        let mut waiting = self.waiting();
        let from_here = waiting.guests.values().filter(|stay| stay.address == address).count();
        // One address may hold three quarters.
        let is_crowd = from_here >= (self.capacity * 3).div_ceil(4);
        if is_crowd || waiting.guests.len() >= self.capacity {
            let crowd = if is_crowd { Some(address) } else { waiting.crowd() };
            waiting.put_out_oldest(crowd.filter(|_| hard)?)?;
        }
        let (put_out, evicted) = oneshot::channel();
        waiting.arrivals += 1;
        let number = waiting.arrivals;
        waiting.guests.insert(number, Stay { address, is_known: false, put_out });
        self.open.inc();
        let guest = Guest { lobby: self.clone(), number, place: OnceCell::new() };
        Some((guest.into(), evicted))
    }
}

impl Waiting {
    /// The address with the most evictable connections.
    fn crowd(&self) -> Option<IpAddr> {
        let mut counts = HashMap::new();
        for stay in self.guests.values().filter(|stay| !stay.is_known) {
            *counts.entry(stay.address).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(address, _)| address)
    }

    fn put_out_oldest(&mut self, address: IpAddr) -> Option<()> {
        let mut guests = self.guests.iter();
        let (number, _) = guests.find(|(_, stay)| !stay.is_known && stay.address == address)?;
        let number = *number;
        // The connection may have ended already.
        let _ = self.guests.remove(&number)?.put_out.send(());
        Some(())
    }
}

impl Guest {
    /// Admits an authorised connection: it leaves the lobby as soon as there is room.
    pub async fn let_in(&self, pass: Pass) -> Result<(), Full> {
        let place = self.place.get_or_try_init(|| async {
            self.is_known(true);
            let place = self.lobby.room.take(1, pass).await;
            if place.is_ok() {
                self.leave();
            } else {
                self.is_known(false);
            }
            place
        });
        place.await.map(|_| ())
    }

    fn is_known(&self, is_known: bool) {
        if let Some(stay) = self.lobby.waiting().guests.get_mut(&self.number) {
            stay.is_known = is_known;
        }
    }

    fn leave(&self) {
        if self.lobby.waiting().guests.remove(&self.number).is_some() {
            self.lobby.left.notify_waiters();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.leave();
        self.lobby.open.dec();
    }
}

/// The unit that counts as one address: for IPv6, a site owns the lower half.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Role;

    const PASS: Pass = Pass { role: Role::Read, anonymous: false };

    fn from(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn is_out(evicted: &mut PutOut) -> bool {
        matches!(evicted.try_recv(), Ok(()))
    }

    /// A lobby with eight places.
    fn lobby() -> Lobby {
        Lobby::new(16, Duration::from_secs(1), Gauge::default())
    }

    async fn all(lobby: &Lobby, last: u8, count: usize) -> Vec<(Arc<Guest>, PutOut)> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(lobby.enter(from(last)).await.unwrap());
        }
        all
    }

    #[tokio::test]
    async fn one_address_puts_out_its_own() {
        let lobby = lobby();
        let mut other = lobby.enter(from(2)).await.unwrap();
        let mut crowd = all(&lobby, 1, 9).await;
        assert!(!is_out(&mut other.1));
        let out: Vec<bool> = crowd.iter_mut().map(|(_, evicted)| is_out(evicted)).collect();
        assert_eq!(out, [true, true, true, false, false, false, false, false, false]);
        assert_eq!(lobby.open.get(), 10);
        drop(crowd);
        assert_eq!((lobby.open.get(), lobby.waiting().guests.len()), (1, 1));
    }

    #[tokio::test]
    async fn the_oldest_of_the_largest_crowd_makes_room() {
        let lobby = lobby();
        let mut guests = all(&lobby, 1, 3).await;
        guests.extend(all(&lobby, 2, 4).await);
        guests.extend(all(&lobby, 3, 2).await);
        let out: Vec<usize> = (0..9).filter(|index| is_out(&mut guests[*index].1)).collect();
        assert_eq!(out, [3]);
    }

    #[tokio::test]
    async fn many_that_are_let_in_one_after_the_other_put_nobody_out() {
        let lobby = Lobby::new(100, Duration::from_secs(1), Gauge::default());
        let enter = |_| async {
            let mut entered = lobby.enter(from(1)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!is_out(&mut entered.1));
            entered.0.let_in(PASS).await.unwrap();
            entered
        };
        futures_util::future::join_all((0..100).map(enter)).await;
    }

    #[tokio::test]
    async fn who_is_let_in_is_not_put_out() {
        let lobby = lobby();
        let mut first = lobby.enter(from(1)).await.unwrap();
        first.0.let_in(PASS).await.unwrap();
        let _crowd = all(&lobby, 1, 9).await;
        assert_eq!(first.1.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }

    #[tokio::test]
    async fn who_waits_for_room_keeps_the_place_in_the_lobby() {
        let lobby = Lobby::new(2, Duration::from_secs(9), Gauge::default());
        let guests = all(&lobby, 1, 1).await;
        guests[0].0.let_in(PASS).await.unwrap();
        let second = lobby.enter(from(1)).await.unwrap().0;
        second.let_in(PASS).await.unwrap();
        let (third, _told) = lobby.enter(from(1)).await.unwrap();
        let waiter = tokio::spawn({
            let third = third.clone();
            async move { third.let_in(PASS).await }
        });
        tokio::task::yield_now().await;
        assert!(lobby.enter(from(2)).await.is_none(), "the lobby has one place");
        drop(second);
        assert_eq!(waiter.await.unwrap(), Ok(()));
        assert!(lobby.enter(from(2)).await.is_some());
        assert_eq!(third.let_in(PASS).await, Ok(()));
    }

    #[test]
    fn a_site_is_one_address() {
        let [a, b, c] =
            ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map(|a| network(a.parse().unwrap()));
        assert!(a == b && b != c);
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), network("192.0.2.1".parse().unwrap()));
    }
}
