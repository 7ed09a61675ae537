import { z } from "zod";
import type { Page } from "#crdt/page.ts";
import { speaks } from "./messages.ts";
import type { PeerMessage } from "./messages.ts";

const Seq = z.int().min(0);
const Name = z.string().min(1).max(128);
const Vector = z.array(z.tuple([Name, Seq])).max(100_000);
const Stamp = z.string().regex(/^[0-9a-f]{16}$/);
const Sum = z.string().regex(/^[0-9a-f]{16}$/);
/** Its shape is checked where it is read. */
const AnyPage = z.custom<Page>((value) => typeof value === "object" && value !== null);

/** Keys that are not named here are let pass and forgotten: a newer peer may say more. */
const Message = z.discriminatedUnion("t", [
  z.object({
    t: z.literal("hello"),
    cluster: z.string().max(256),
    id: Name,
    origin: Name,
    boot: Name,
    proto: z.tuple([Seq, Seq]),
    ready: z.boolean(),
    vv: Vector,
    soon: Vector.optional(),
  }),
  z.object({ t: z.literal("welcome"), proto: Seq, walls: z.tuple([z.number(), z.number()]) }),
  z.object({ t: z.literal("refuse"), code: z.string().max(64), message: z.string().max(1024) }),
  z.object({ t: z.literal("push"), page: AnyPage, origin: Name, from: Seq, upto: Seq }),
  z.object({ t: z.literal("have"), ready: z.boolean(), vv: Vector, soon: Vector.optional() }),
  z.object({
    t: z.literal("pull"),
    sync: Seq,
    vv: Vector,
    soon: Vector.optional(),
    window: z.int().min(1).max(64),
    buckets: z.array(z.int().min(0).max(255)).max(256).optional(),
  }),
  z.object({ t: z.literal("credit"), sync: Seq }),
  z.object({
    t: z.literal("page"),
    sync: Seq,
    index: Seq,
    full: z.boolean(),
    page: AnyPage,
    end: z
      .object({
        upto: Vector,
        soon: Vector.optional(),
        hlc: Stamp,
        full: z.object({ floor: Vector, hlc: Stamp }).optional(),
      })
      .optional(),
  }),
  z.object({
    t: z.literal("ping"),
    n: Seq,
    ready: z.boolean(),
    vv: Vector,
    soon: Vector.optional(),
    digest: Sum.optional(),
  }),
  z.object({ t: z.literal("pong"), n: Seq, walls: z.tuple([z.number(), z.number()]) }),
  z.object({ t: z.literal("digest"), vv: Vector, sums: z.array(Sum).length(256) }),
  z.object({
    t: z.literal("soft"),
    entries: z
      .array(z.object({ key: z.string().min(1).max(256), boot: Seq, seq: Seq, text: z.string().max(65_536) }))
      .max(10_000),
  }),
]);

const ForeignHello = z.object({ t: z.literal("hello"), proto: z.tuple([Seq, Seq]) });

/** Whether this is how a controller greets that speaks none of our protocols, whatever else its greeting is made of. */
export function isForeignHello(value: unknown): boolean {
  const { success, data } = ForeignHello.safeParse(value);
  return success && !speaks(data.proto);
}

/** A message from the network, checked; undefined when it is none. */
export function parseMessage(value: unknown): PeerMessage | undefined {
  const { success, data } = Message.safeParse(value);
  return success ? (data as PeerMessage) : undefined;
}
