import type { Transport } from "#engine/transport/connect.ts";
import type { PublicKey } from "#engine/transport/admit-key.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { LoginRefused } from "#engine/transport/unreachable.ts";
import { readBytes } from "#engine/yaml/read.ts";
import { KcoreError } from "#errors/problem.ts";
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

/** Puts one public key on many nodes; a password is asked for when the first node wants one, and used for all of them. */
export class KeyDeployment {
  readonly #transport: Transport;
  readonly #key: PublicKey;
  readonly #users: readonly string[];
  readonly #passwordFile: string | undefined;
  #password: string | undefined;

  /** `users`: `root of n1`, all that one password is for. */
  constructor(
    transport: Transport,
    {
      key,
      users,
      passwordFile,
    }: { readonly key: PublicKey; readonly users: readonly string[]; readonly passwordFile: string | undefined },
  ) {
    this.#transport = transport;
    this.#key = key;
    this.#users = users;
    this.#passwordFile = passwordFile;
  }

  /** Whether the key is new on the node, whose host key is pinned. @throws KcoreError as `Transport.admitKey` */
  async put(endpoint: Endpoint): Promise<boolean> {
    const key = this.#key;
    try {
      return (await this.#transport.admitKey(endpoint, { key })).isNew;
    } catch (error) {
      if (!wantsPassword(error, endpoint)) throw error;
    }
    const known = this.#password !== undefined;
    this.#password ??= await passwordOf(this.#whom(), this.#passwordFile);
    try {
      return (await this.#transport.admitKey(endpoint, { key, password: this.#password })).isNew;
    } catch (error) {
      const isOther = known && error instanceof LoginRefused && error.host === endpoint.name;
      if (!isOther || this.#passwordFile !== undefined || !canPrompt()) throw error;
    }
    // Another password than the former nodes': it is for this one alone.
    const password = await passwordOf(`${endpoint.user} of ${endpoint.name}, which has another`, undefined);
    return (await this.#transport.admitKey(endpoint, { key, password })).isNew;
  }

  #whom(): string {
    const [first = "", ...others] = this.#users;
    if (others.length === 0) return first;
    return `${first} and of ${others.slice(0, 3).join(", ")}${others.length > 3 ? ` and ${others.length - 3} more` : ""}`;
  }
}

/** No key of ours is let in, or there is none; a jump host's refusal and an unknown host key are mended otherwise. */
function wantsPassword(error: unknown, { name }: Endpoint): boolean {
  if (error instanceof LoginRefused) return error.host === name;
  return (
    error instanceof KcoreError && error.problems.every(({ code }) => code === "AUTH_FAILED" || code.startsWith("KEY_"))
  );
}
