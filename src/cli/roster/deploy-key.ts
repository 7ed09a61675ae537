import type { Transport } from "#engine/transport/connect.ts";
import type { PublicKey } from "#engine/transport/admit-key.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { LoginRefused } from "#engine/transport/unreachable.ts";
import { readBytes } from "#engine/yaml/read.ts";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { passwordOf } from "../terminal/confirm.ts";

/** The public key in a file as ssh-keygen(1) writes it. @throws KcoreError FILE_UNREADABLE, KEY_UNREADABLE */
export function readPublicKey(file: string): PublicKey {
  const text = readBytes(file, { maxBytes: 64 * 1024 }).toString("utf8");
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const [line = ""] = lines;
  const found = lines.length === 1 ? parseHostKey(line) : undefined;
  if (found) {
    const comment = line
      .trim()
      .split(/\s+/)
      .slice(2)
      .join(" ")
      .replaceAll(/[^\x20-\x7e]/g, "");
    return { type: found.type, key: found.key, ...(comment !== "" && { comment }) };
  }
  const isPrivate = text.includes("PRIVATE KEY");
  throw new KcoreError({
    code: "KEY_UNREADABLE",
    message: isPrivate
      ? `${file} holds a private key, which stays where it is`
      : `${file} does not hold one public key: TYPE BASE64`,
    hint: isPrivate ? `name its public half: ${file}.pub` : "ssh-keygen -y -f PRIVATE_KEY prints one",
  });
}

export interface KeyDeployment {
  readonly key: PublicKey;
  /** `root of n1`: each login with the shared password. */
  readonly users: readonly string[];
  readonly passwordFile: string | undefined;
}

/**
 * A function that puts the key on a node whose host key is pinned, and returns whether it is new there. The first node
 * that needs a password asks for it, and all others use it. @throws KcoreError as `Transport.admitKey`
 */
export function keyDeployment(
  transport: Transport,
  { key, users, passwordFile }: KeyDeployment,
): (endpoint: Endpoint) => Promise<boolean> {
  const admit = async (endpoint: Endpoint, password?: string): Promise<boolean> =>
    (await transport.admitKey(endpoint, { key, ...omitUndefined({ password }) })).isNew;
  const [first = "", ...others] = users;
  const more = others.length > 3 ? ` and ${others.length - 3} more` : "";
  const whom = others.length === 0 ? first : `${first} and of ${others.slice(0, 3).join(", ")}${more}`;
  let shared: string | undefined;
  return async (endpoint) => {
    try {
      return await admit(endpoint);
    } catch (error) {
      if (!wantsPassword(error, endpoint)) throw error;
    }
    const known = shared !== undefined;
    shared ??= await passwordOf(whom, passwordFile);
    try {
      return await admit(endpoint, shared);
    } catch (error) {
      const isOther = known && error instanceof LoginRefused && error.host === endpoint.name;
      if (!isOther || passwordFile !== undefined || !canPrompt()) throw error;
    }
    // Another password than the former nodes': it is for this node alone.
    return admit(endpoint, await passwordOf(`${endpoint.user} of ${endpoint.name}, which has another`, undefined));
  };
}

/** Whether the node accepts no key of ours; a jump host's refusal and an unknown host key have other remedies. */
function wantsPassword(error: unknown, { name }: Endpoint): boolean {
  if (error instanceof LoginRefused) return error.host === name;
  return (
    error instanceof KcoreError && error.problems.every(({ code }) => code === "AUTH_FAILED" || code.startsWith("KEY_"))
  );
}
