import type { KcoreError } from "#errors/problem.ts";
import { hostFailure } from "./unreachable.ts";
import type { HostKey, HostKeyVerdict, TrustedKeys } from "./host-key.ts";

/** Why a host's key is not accepted, told so that the operator can decide; undefined when it is (S-1, F-23). */
export function hostKeyProblem(
  { name, address, port }: { readonly name: string; readonly address: string; readonly port: number },
  presented: HostKey,
  trusted: TrustedKeys,
  verdict: HostKeyVerdict,
): KcoreError | undefined {
  const where = `${name} (${address} port ${port})`;
  const shown = `${presented.fingerprint} (${presented.type})`;
  switch (verdict) {
    case "trusted":
      return undefined;
    case "unknown":
      return hostFailure({
        code: "HOST_KEY_UNKNOWN",
        message: `the host key of ${where} is not known: it presents ${shown}`,
        hint: `compare it with “ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub” on its console, then: kcore roster trust ${name}`,
        ...(trusted.ignored.length > 0 && { detail: trusted.ignored.join("\n") }),
      });
    case "changed":
      return hostFailure({
        code: "HOST_KEY_CHANGED",
        message: `the host key of ${where} has CHANGED: someone may be listening in, or it was reinstalled`,
        hint: `if it was reinstalled, and the new key is what its console shows: kcore roster trust --replace ${name}`,
        detail: [
          `it presents  ${shown}`,
          ...trusted.keys.map((key) => `expected     ${key.fingerprint} (${key.type}), by ${trusted.source}`),
        ].join("\n"),
      });
    case "revoked":
      return hostFailure({
        code: "HOST_KEY_REVOKED",
        message: `the host key of ${where} was revoked: ${shown} is marked @revoked in ${trusted.source}`,
        hint: "the host needs a new key; do not use this one",
      });
  }
}
