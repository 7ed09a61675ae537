// “Neighbouring versions” (docs/replication.md): the messages between controllers, and the protocols that this build speaks.
import { z } from "zod";
import type { Page } from "#crdt/page.ts";

/**
 * The oldest and the newest protocol of this build; two controllers use the newest that both speak. A protocol covers messages, pages,
 * the digest and the merge of each key. A change that the former release would misread, or not read, makes a new protocol; an optional
 * field does not.
 */
export const protocols = [1, 1] as const;

type ProtocolRange = readonly [oldest: number, newest: number];

/** Whether this build has a protocol in common with a build of this range. */
export function speaks([oldest, newest]: ProtocolRange): boolean {
  return newest >= protocols[0] && oldest <= protocols[1];
}

export const protocolsText = `this controller speaks replication protocol ${[...new Set(protocols)].join(" to ")}`;

export type RefusalCode =
  | "CLUSTER_DIFFERS"
  | "PROTOCOL_UNKNOWN"
  | "NOT_REGISTERED"
  | "NOT_READY"
  | "EQUIVOCATION"
  | "SAME_CONTROLLER"
  | "TWO_COPIES"
  | "MALFORMED";

const Seq = z.int().min(0);
const Name = z.string().min(1).max(128);
const Vector = z.array(z.tuple([Name, Seq])).max(100_000);
const EncodedStamp = z.string().regex(/^[0-9a-f]{16}$/);
const Sum = z.string().regex(/^[0-9a-f]{16}$/);
const Protocols = z.tuple([Seq, Seq]);
/** By the wall clock of the answering side: the arrival of the greeting or ping, and the sending of the answer. */
const Walls = z.tuple([z.number(), z.number()]);
/** Only an object here: `PageReader` checks the shape. */
const AnyPage = z.custom<Page>((value) => typeof value === "object" && value !== null);
/**
 * `soon`: transactions that the sender accepted but has not merged yet, since they are being journaled or were salvaged. The field
 * accompanies each version vector that acknowledges transactions. The transactions of `soon` perhaps have not seen the newest deletions
 * of that vector, so the receiver forgets no deletion before these transactions have arrived.
 */
const Underway = z.object({ soon: Vector.optional() });
/** The transactions that the sender holds, and whether its state is complete. */
const HeldVector = Underway.extend({ ready: z.boolean(), vv: Vector });

/** The end of a pull. */
const PullEnd = Underway.extend({
  upto: Vector,
  /** The sender's clock: not below any stamp that the sender has seen. */
  hlc: EncodedStamp,
  /**
   * Marks a full exchange, since the puller has not seen deletions that the sender forgot: registers that `upto` covers and that were not
   * sent are deleted.
   */
  full: z.object({ floor: Vector, hlc: EncodedStamp }).optional(),
});

/** Soft state (liveness of nodes): `key` ends with the sender's id; never journaled (soft-state.ts). */
const SoftEntry = z.object({ key: z.string().min(1).max(256), boot: Seq, seq: Seq, text: z.string().max(65_536) });

/**
 * All messages between controllers about replication (docs/adr/0501-replication-core.md). Plain JSON. Unknown keys are ignored: a newer
 * peer may send them.
 */
const Message = z.discriminatedUnion("t", [
  /** `boot`: random for each process of the sender. */
  HeldVector.extend({
    t: z.literal("hello"),
    cluster: z.string().max(256),
    id: Name,
    origin: Name,
    boot: Name,
    /** The address of the sender's listener, for messages to operators. */
    at: z.string().max(300).optional(),
    proto: Protocols,
  }),
  /** Accepts the peer's hello. */
  z.object({ t: z.literal("welcome"), proto: Seq, walls: Walls }),
  z.object({ t: z.literal("refuse"), code: z.string().max(64), message: z.string().max(1024) }),
  /** Transactions `from+1…upto` of the sender's own origin, complete. */
  z.object({ t: z.literal("push"), page: AnyPage, origin: Name, from: Seq, upto: Seq }),
  HeldVector.extend({ t: z.literal("have") }),
  /** `buckets`: a repair, which asks for all registers of these digest buckets and no others, also for those that `vv` covers. */
  Underway.extend({
    t: z.literal("pull"),
    sync: Seq,
    vv: Vector,
    window: z.int().min(1).max(64),
    buckets: z.array(z.int().min(0).max(255)).max(256).optional(),
  }),
  z.object({ t: z.literal("credit"), sync: Seq }),
  /** `full`: whether the exchange is full. Only former versions read this field; later versions read `end.full`. */
  z.object({
    t: z.literal("page"),
    sync: Seq,
    index: Seq,
    full: z.boolean(),
    page: AnyPage,
    end: PullEnd.optional(),
  }),
  /** `copies`: a text for operators, that another process runs under the receiver's identity. */
  HeldVector.extend({ t: z.literal("ping"), n: Seq, digest: Sum.optional(), copies: z.string().max(1024).optional() }),
  z.object({ t: z.literal("pong"), n: Seq, walls: Walls }),
  z.object({ t: z.literal("digest"), vv: Vector, sums: z.array(Sum).length(256) }),
  z.object({ t: z.literal("soft"), entries: z.array(SoftEntry).max(10_000) }),
]);

type DeepReadonly<Value> = { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };
export type PeerMessage = DeepReadonly<z.infer<typeof Message>>;
export type Underway = DeepReadonly<z.infer<typeof Underway>>;
export interface GreetingRefusal {
  readonly code: RefusalCode;
  readonly message: string;
}
export type MessageOf<T extends PeerMessage["t"]> = Extract<PeerMessage, { t: T }>;
export type PullEnd = DeepReadonly<z.infer<typeof PullEnd>>;
export type SoftEntry = DeepReadonly<z.infer<typeof SoftEntry>>;

const ForeignHello = z.object({ t: z.literal("hello"), proto: Protocols });

/** Whether this is the greeting of a controller without a common protocol; its other fields may have any form. */
export function isForeignHello(value: unknown): boolean {
  const { success, data } = ForeignHello.safeParse(value);
  return success && !speaks(data.proto);
}

/** Checks a message from the network; undefined when it is malformed. */
export function parsePeerMessage(value: unknown): PeerMessage | undefined {
  return Message.safeParse(value).data;
}
