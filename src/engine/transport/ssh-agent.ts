import ssh2 from "ssh2";
import type { ParsedKey } from "ssh2";
import { orAborted, withDeadline } from "./deadline.ts";
import { hostFailure, messageOf } from "./host-problems.ts";

/** A key that an agent holds, and how to have it sign. The agent is never forwarded to a host (S-9). */
export interface AgentKey {
  readonly key: ParsedKey;
  readonly sign: (data: Buffer, hash: "sha256" | "sha512" | undefined) => Promise<Buffer>;
}

export interface SshAgent {
  /** @throws KcoreError AGENT_UNREACHABLE */
  list(): Promise<readonly AgentKey[]>;
}

/** Milliseconds for the agent to list its keys. */
const listLimit = 5000;
/** Milliseconds for the agent to sign: the agent can have to ask its user. */
const signLimit = 30_000;

/** The ssh-agent(1) that listens on a socket. */
export function openAgent(socket: string): SshAgent {
  const agent = new ssh2.OpenSSHAgent(socket);
  const fail = (what: string, cause: unknown) =>
    hostFailure(
      {
        code: "AGENT_UNREACHABLE",
        message: `the ssh-agent at ${socket} ${what}: ${messageOf(cause)}`,
        hint: "is it running? “ssh-add -l” asks it; unset SSH_AUTH_SOCK to do without",
      },
      cause,
    );
  const within = async <T>(limit: number, what: string, work: (done: (error: unknown, value?: T) => void) => void) => {
    const answer = new Promise<T>((resolve, reject) =>
      work((error, value) => (error || value === undefined ? reject(error as Error) : resolve(value))),
    );
    try {
      return await withDeadline(limit, undefined, (signal) => orAborted(answer, signal));
    } catch (error) {
      throw fail(what, error);
    }
  };
  return {
    async list() {
      const found = await within<unknown[]>(listLimit, "does not answer", (done) =>
        agent.getIdentities((error, keys) => done(error, keys)),
      );
      // Keys that ssh2 cannot read (FIDO keys, certificates) it cannot offer either.
      const keys = found
        .map((key) => ssh2.utils.parseKey(key as Buffer) as ParsedKey | Error)
        .filter((key): key is ParsedKey => !(key instanceof Error));
      return keys.map((key) => ({
        key,
        sign: (data, hash) =>
          within<Buffer>(signLimit, "does not sign", (done) =>
            agent.sign(key, data, hash ? { hash } : {}, (error, signature) => done(error, signature)),
          ),
      }));
    },
  };
}
