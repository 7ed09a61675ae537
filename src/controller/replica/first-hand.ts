import type { Dot } from "#crdt/register.ts";
import type { VersionVector } from "#crdt/version-vector.ts";
import type { Peer } from "./peer.ts";
import { controllerOf } from "./registered-controllers.ts";

/**
 * Which transactions their own controller has sent to this process. Only they convict it when it sends another content later; what others
 * handed on may have been forged by them. Of each origin the last run is remembered.
 */
export class FirstHand {
  readonly #runs = new Map<string, { readonly from: number; readonly upto: number }>();
  readonly #accepted: VersionVector;

  constructor(accepted: VersionVector) {
    this.#accepted = accepted;
  }

  /** A peer has sent what there is up to this vector. To be called when that is durable. */
  start({ id }: Peer, upto: VersionVector): () => void {
    const news = [...upto].flatMap(([origin, seq]) => {
      const from = this.#accepted.get(origin) ?? 0;
      return controllerOf(origin) === id && seq > from ? [{ origin, from, seq }] : [];
    });
    return () => {
      for (const { origin, from, seq } of news) {
        const run = this.#runs.get(origin);
        this.#runs.set(origin, { from: run?.upto === from ? run.from : from, upto: seq });
      }
    };
  }

  has({ o, s }: Dot): boolean {
    const run = this.#runs.get(o);
    return run !== undefined && s > run.from && s <= run.upto;
  }
}
