import type { Duplex } from "node:stream";
import { realTimers, type Timers } from "#base/timers.ts";
import { orAborted } from "./deadline.ts";
import type { Connect, Endpoint, Host } from "./host.ts";

/** Connections to jump hosts, each shared by all nodes behind it. */
export interface Jumps {
  /** A stream from the hop to the target's port; the hop is verified by its own host keys and logged in to with its own key (S-9). */
  dial(hop: Endpoint, target: Pick<Endpoint, "address" | "port">, signal: AbortSignal): Promise<Duplex>;
  close(): Promise<void>;
}

/** Milliseconds that an unused jump connection is kept for the next node. */
const linger = 2000;

interface Jump {
  readonly host: Promise<Host>;
  users: number;
  /** Calls off the end of the unused connection. */
  keep?: () => void;
}

/** A pool that connects to each hop once, however many nodes ask at the same time. */
export function createJumps(connect: Connect, { after }: Timers = realTimers): Jumps {
  const jumps = new Map<string, Jump>();

  const drop = (key: string, jump: Jump) => {
    if (jumps.get(key) === jump) jumps.delete(key);
  };
  const end = async ({ host }: Jump) => host.then((open) => open.close()).catch(() => undefined);
  const reach = (hop: Endpoint): [string, Jump] => {
    const key = endpointKey(hop);
    let jump = jumps.get(key);
    if (!jump) {
      // The caller's signal must not end the connection: other nodes perhaps wait for the same hop. `connect` has a timeout of its own.
      const made: Jump = { host: connect(hop), users: 0 };
      jumps.set(key, (jump = made));
      made.host.then(
        (host) => host.closed.then(() => drop(key, made)),
        () => drop(key, made),
      );
    }
    return [key, jump];
  };
  const release = (key: string, jump: Jump) => {
    // A dropped connection has failed or ended.
    if (--jump.users > 0 || jumps.get(key) !== jump) return;
    jump.keep = after(linger, () => {
      drop(key, jump);
      void end(jump);
    });
  };

  return {
    async dial(hop, { address, port }, signal) {
      const [key, jump] = reach(hop);
      jump.users++;
      jump.keep?.();
      try {
        const host = await orAborted(jump.host, signal);
        const stream = await host.forward(address, port, { signal });
        stream.once("close", () => release(key, jump));
        return stream;
      } catch (error) {
        release(key, jump);
        throw error;
      }
    },
    async close() {
      const all = [...jumps.values()];
      jumps.clear();
      for (const { keep } of all) keep?.();
      await Promise.all(all.map(end));
    },
  };
}

function endpointKey({ address, port, user, identityFile, hostKeys, jump }: Endpoint): string {
  return JSON.stringify([address, port, user, identityFile ?? null, hostKeys, jump.map(endpointKey)]);
}
