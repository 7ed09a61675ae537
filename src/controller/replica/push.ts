// “Conflicts are listed” (docs/replication.md): a push counts only after all that its writer had seen, so conflicts stay exact.
import { hasSeen } from "#crdt/conflict.ts";
import { MalformedPage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers, coversContext } from "#crdt/version-vector.ts";
import { inBackground } from "./commit-queue.ts";
import type { Core } from "./replica-core.ts";
import { checkOrigins } from "./origins.ts";
import { controllerOf } from "./registered-controllers.ts";
import type { MessageOf } from "./messages.ts";
import type { PeerStream } from "./peer.ts";
import type { Puller } from "./puller.ts";

/**
 * Applies a peer's own transactions, if all its earlier ones are here, and all that it had seen when it wrote them (causal delivery:
 * Birman, Schiper, Stephenson, 1991). So version vectors stay causally closed, and conflicts exact. Otherwise the puller fetches them.
 */
export function receivePush(
  core: Core,
  { stream, puller }: { readonly stream: PeerStream; readonly puller: Puller },
  push: MessageOf<"push">,
): void {
  const { state, futureStamps } = core;
  const { accepted } = core.commits;
  const { peer } = stream;
  const { origin, from, upto } = push;
  if (controllerOf(origin) !== peer.id) throw new MalformedPage(`transactions of another origin, ${origin}`);
  peer.pushed(origin, upto);
  if (!state.ready || core.fullExchange) return;
  const registers = state.reader.read(push.page);
  if (registers.some(({ o, s }) => o !== origin || s <= from || s > upto))
    throw new MalformedPage(`transactions of ${origin} that it did not announce`);
  if (covers(accepted, origin, upto)) {
    for (const register of state.map.findEquivocations(registers)) core.reportEquivocation(register);
    if (core.isEquivocal(origin)) stream.refuse("EQUIVOCATION", `${origin} wrote two things under one number`);
    return;
  }
  const fresh = registers.filter(({ o, s }) => !covers(state.map.vector, o, s));
  checkOrigins(state, [[origin, upto]], fresh);
  // A restored peer may have written this before it learned of a deletion that is forgotten here (deletion-floor.ts). A pull
  // brings its corrected state; a push brings the transaction as written.
  const isBehind = fresh.some((register) => [...state.floor.vector].some(([o, s]) => !hasSeen(register, { o, s })));
  const isFounded = covers(accepted, origin, from) && registers.every(({ x }) => coversContext(accepted, x));
  if (isBehind || !isFounded) return puller.pull();
  const latest = Math.max(0, ...registers.map(({ ms }) => ms));
  const treatment = futureStamps.treatmentOf(latest);
  if (treatment === "defer") return puller.defer(origin, latest);
  if (treatment === "wait") return puller.pull();
  inBackground(mergePush(core, peer.id, push, fresh));
}

async function mergePush(
  { commits, futureStamps }: Core,
  peer: string,
  { page, origin, from, upto }: MessageOf<"push">,
  registers: readonly Register[],
): Promise<void> {
  await commits.commit([{ t: "apply", page, upto: [[origin, upto]], from: [[origin, from]] }], registers);
  futureStamps.noteTaken(peer, origin);
}
