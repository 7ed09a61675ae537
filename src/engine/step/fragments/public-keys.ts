import { createHash } from "node:crypto";
import { z } from "zod";
import { shellText } from "../shell-text.ts";

/** A public key of OpenSSH, from a line of a .pub file. */
export interface SshPublicKey {
  readonly type: string;
  readonly base64: string;
  readonly comment: string;
  /** As `ssh-keygen -l` shows it: SHA256:… */
  readonly fingerprint: string;
}

const types = /^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)$/;

/** A line `TYPE BASE64 COMMENT`; the bytes must be a key of that type (RFC 4253, 6.6: they begin with its name). */
export const PublicKeyLine = z.string().transform((text, context): SshPublicKey => {
  const [, type = "", base64 = "", comment = ""] = /^(\S+)[ \t]+(\S+)(?:[ \t]+(.*))?$/.exec(text.trim()) ?? [];
  const problem = keyLineProblem(text, type, base64);
  if (problem !== undefined) {
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  }
  const hash = createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64");
  return {
    type,
    base64,
    comment: comment.trim().replaceAll(/\s+/g, " "),
    fingerprint: `SHA256:${hash.replaceAll("=", "")}`,
  };
});

function keyLineProblem(text: string, type: string, base64: string): string | undefined {
  if (text.includes("PRIVATE KEY")) return "is a private key: give the line of the .pub file";
  if (/[\0\r\n]/.test(text.trim())) return "must be one line";
  if (/-cert-v0[01]@/.test(type))
    return "is a certificate: give its key, or the CA's key with the option cert-authority";
  if (!types.test(type))
    return "must be a line of a .pub file, such as ssh-ed25519 AAAA… name; options before the key stand in `options`";
  const bytes = Buffer.from(base64, "base64");
  const length = bytes.length >= 4 ? bytes.readUInt32BE(0) : 0;
  const isWhole = bytes.toString("base64") === base64 && bytes.subarray(4, 4 + length).toString("latin1") === type;
  return isWhole && endsWithin(bytes) ? undefined : `is cut off or broken: its bytes are no ${type} key`;
}

/** Whether the key's bytes are a sequence of two or more complete strings (RFC 4251, 5). */
function endsWithin(bytes: Buffer): boolean {
  let at = 0;
  let fields = 0;
  while (at + 4 <= bytes.length) {
    at += 4 + bytes.readUInt32BE(at);
    fields += 1;
  }
  return at === bytes.length && fields >= 2;
}

/** The options without a value (sshd(8), AUTHORIZED_KEYS FILE FORMAT). */
const optionsWithoutValue =
  "agent-forwarding cert-authority no-agent-forwarding no-port-forwarding no-pty no-touch-required no-user-rc no-x11-forwarding port-forwarding pty restrict user-rc verify-required x11-forwarding".split(
    " ",
  );
/** The options with a value. */
const optionsWithValue = "command environment expiry-time from permitlisten permitopen principals tunnel".split(" ");

/** An option of a key. sshd ignores a key with an unknown option, so such an option is refused. */
export const KeyOption = shellText(
  z.string().refine((option) => {
    const [, name = "", value] = /^([A-Za-z0-9-]+)(?:="((?:[^"\\\0\t\r\n]|\\[^\0\t\r\n])*)")?$/.exec(option) ?? [];
    return (value === undefined ? optionsWithoutValue : optionsWithValue).includes(name.toLowerCase());
  }, 'must be an option of sshd(8), such as no-pty or from="192.0.2.0/24"'),
  // sshd unquotes the command, and a login shell reads it: an expression's value there must be one plain word.
  (_, option) => (/^command=/i.test(option) ? "sh" : undefined),
);
