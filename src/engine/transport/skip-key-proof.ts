import type { Client } from "ssh2";

/**
 * OpenSSH's sshd names all its host keys after a login, and ssh2 has it prove each of them. These signatures cost both
 * sides more than the rest of the login, for keys that are not used, since only pinned keys are trusted. Leaves the
 * question out; must be called before the login ends. If ssh2 looks different, nothing is changed.
 */
export function skipHostKeyProof(client: Client): void {
  const { _protocol: protocol, _callbacks: callbacks } = client as unknown as {
    _protocol?: Record<string, unknown>;
    _callbacks?: unknown;
  };
  if (typeof protocol?.["openssh_hostKeysProve"] !== "function" || !Array.isArray(callbacks)) return;
  // ssh2 has just queued a callback for the answer that will not come; answers are matched by their order.
  protocol["openssh_hostKeysProve"] = () => callbacks.pop() as unknown;
}
