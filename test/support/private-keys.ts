import type { LabNode } from "#lab/lab.ts";
import { on } from "./deploy.ts";

/** A private key on a machine, identified by a unique piece of it. */
export interface Secret {
  readonly machine: string;
  readonly file: string;
  /** `a:node.key`. */
  readonly name: string;
  /** Base64 of private bits only: the first characters of the PEM's second line. */
  readonly fragment: string;
}

/** The private keys below /etc/kcore of a machine. */
export async function secretsOf(node: LabNode): Promise<readonly Secret[]> {
  const text = await on(
    node,
    'grep -rl \'PRIVATE KEY\' /etc/kcore | while read -r f; do echo "$f $(sed -n 3p "$f")"; done',
  );
  return text.split("\n").map((line) => {
    const [file = "", body = ""] = line.split(" ");
    return {
      machine: node.name,
      file,
      name: `${node.name}:${file.split("/").at(-1) ?? ""}`,
      fragment: body.slice(0, 24),
    };
  });
}

/** The files of a machine that contain one of these keys, logs and temporary files included. */
export async function privateKeysIn(
  node: LabNode,
  secrets: readonly Secret[],
): Promise<readonly { readonly secret: Secret; readonly file: string }[]> {
  const { stdout } = await node.exec("grep -raoF -f - /etc /var /root /home /tmp /run /srv /opt /boot 2>/dev/null", {
    input: secrets.map(({ fragment }) => `${fragment}\n`).join(""),
    timeout: 120_000,
  });
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      const secret = secrets.find(({ fragment }) => line.endsWith(fragment));
      return secret ? [{ secret, file: line.slice(0, line.length - secret.fragment.length - 1) }] : [];
    });
}
