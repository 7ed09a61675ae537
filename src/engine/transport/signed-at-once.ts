import type { Client } from "ssh2";
import { signWithCallback } from "./ssh-agent.ts";
import type { Identity } from "./login-keys.ts";
import { innerOf } from "./inner-protocol.ts";

const hashOf: Readonly<Record<string, "sha256" | "sha512">> = { "rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512" };

/**
 * Makes the next publickey request of this client a signed one, which spares asking first whether the key is welcome
 * (RFC 4252, section 7): a round trip. Only for a host that is offered exactly one key, since each signature costs.
 * Must be called when authentication begins. If ssh2 looks different, nothing is changed and ssh2 asks first.
 */
export function signNextRequest(client: Client, identity: Identity, onFailure: (error: unknown) => void): void {
  const inner = innerOf(client);
  if (!inner) return;
  const { protocol } = inner;
  const ask = protocol.authPK.bind(protocol);
  protocol.authPK = (user, key, algorithm, sign) => {
    protocol.authPK = ask;
    // Without the server's list of algorithms ssh2 would fall back to SHA-1; every server of this decade takes SHA-2.
    const name =
      algorithm === "ssh-rsa" || (algorithm === undefined && key.type === "ssh-rsa") ? "rsa-sha2-512" : algorithm;
    const hash = name === undefined ? undefined : hashOf[name];
    if (sign || (name !== undefined && hash === undefined)) return ask(user, key, algorithm, sign);
    ask(user, key, name, (data, done) => {
      if (identity.agent) {
        void signWithCallback(identity.agent, { data, hash }, (error, signature) => {
          if (signature) done(signature);
          else onFailure(error);
        });
        return;
      }
      const signature = identity.key.sign(data, hash) as Buffer | Error;
      if (signature instanceof Error) onFailure(signature);
      else done(signature);
    });
  };
}
