/**
 * How two registers of one key are merged; each kind is a total order whose maximum wins, so merging is commutative,
 * associative and idempotent whatever the kind (a join semilattice: Shapiro et al., INRIA RR-7506, 2011).
 */
export type MergeKind =
  /** Last writer wins by (ms, c, origin). */
  | "lww"
  /** Approvals: (epoch, rejected > approved > pending), then last writer: inside an epoch a reject stands. */
  | "approval"
  /** Owners of an update: the highest epoch, then last writer. */
  | "epoch"
  /** Grow-only: the first write stands and is never deleted. */
  | "first"
  /** A deletion stands (conflicts that were acknowledged). */
  | "remove-wins";
