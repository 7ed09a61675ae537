import { isIPv6 } from "node:net";
import { z } from "zod";
import { visible } from "#errors/draw.ts";
import { suggest } from "#errors/suggest.ts";
import { parseReference } from "#engine/params/secret-reference.ts";

// The allowed values of a roster. Names that reach ssh are checked by a list of allowed characters, never of forbidden ones (S-2).

/** RFC 1123 host name. */
const HOST_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/;
const IPV4 = /^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/;
/** An IPv6 address, perhaps with the zone of a link-local one: fe80::1%eth0. */
const IPV6_SHAPE = /^[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,15})?$/;

/** An IPv4 or IPv6 address or a host name. */
export const Address = z
  .string()
  .refine((text) => isAddress(text), "must be an IP address or a host name (letters, digits, dots and hyphens)");

export function isAddress(text: string): boolean {
  // Digits and dots alone are an address: 300.1.1.1 is not a host name.
  if (/^[\d.]+$/.test(text)) return IPV4.test(text);
  return HOST_NAME.test(text) || (IPV6_SHAPE.test(text) && isIPv6(text));
}

/** A login name, also of a directory (`ada@corp`, `CORP\ada`), without characters that a shell or ssh could misread. */
export const LoginName = z.string().regex(/^([A-Za-z0-9_.-]{1,63}\\)?[A-Za-z0-9_.][A-Za-z0-9_.@+-]{0,127}\$?$/, {
  error: ({ input }) =>
    `must be a login name (letters, digits, “_”, “.”, “-”, “+”, “@” and a domain before “\\”), not “${visible(String(input).slice(0, 80))}”`,
});

/** The roster's name of a node, jump host, group or role, never a word of target expressions. */
export const EntryName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, "must be 1 to 63 letters, digits, “.”, “_” or “-”")
  .refine((name) => !["and", "or", "not"].includes(name), "must not be a word of target expressions");

export const Port = z.int().min(1).max(65_535);

export const NodeId = z
  .string()
  .regex(
    /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    "must be a UUID in small letters",
  );

export const KEY_TYPES = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "ssh-rsa",
  "sk-ssh-ed25519@openssh.com",
  "sk-ecdsa-sha2-nistp256@openssh.com",
] as const;

/** `TYPE BASE64` with an optional comment, which is dropped; the bytes must be a key of that type (RFC 4253, 6.6). */
export const HostKeyText = z
  .string()
  .refine((text) => keyProblem(text) === undefined, { error: ({ input }) => keyProblem(String(input)) ?? "" })
  .transform((text) => text.trim().split(/\s+/).slice(0, 2).join(" "));

function keyProblem(text: string): string | undefined {
  const [type = "", base64 = ""] = text.trim().split(/\s+/);
  if (!(KEY_TYPES as readonly string[]).includes(type))
    return `must begin with a key type: ${KEY_TYPES.slice(0, 5).join(", ")}`;
  if (!/^[A-Za-z0-9+/]{20,}={0,2}$/.test(base64)) return "must be TYPE BASE64, as ssh-keyscan prints it after the host";
  const bytes = Buffer.from(base64, "base64");
  const length = bytes.length < 4 ? -1 : bytes.readUInt32BE(0);
  return bytes.subarray(4, 4 + length).toString("latin1") === type
    ? undefined
    : `holds no ${type} key: its bytes say otherwise`;
}

/** A role. A name that resembles `controller` or `worker` is refused as a typing mistake. */
export const Role = EntryName.refine((role) => nearRole(role) === undefined, {
  error: ({ input }) => `is no role that kcore knows; did you mean “${nearRole(String(input))}”?`,
});

function nearRole(role: string): string | undefined {
  const near = suggest(role, ["controller", "worker"]);
  return near === role ? undefined : near;
}

/** An absolute, normalised folder on the node, of plain characters. */
export const StateDir = z
  .string()
  .regex(/^(\/[A-Za-z0-9._-]+){1,16}$/, "must be an absolute path of letters, digits, “.”, “_” and “-”")
  .refine((path) => !/\/\.\.?(\/|$)/.test(path), "must not hold “.” or “..”");

/** A reference to a secret. Any other value is refused, and the error does not show the value. */
export const Reference = z
  .unknown()
  .refine((value) => parseReference(value) !== undefined, {
    error: "must refer to a secret (env:NAME, file:PATH, command:CMD) or be sealed (kcore secrets set)",
    params: { code: "SECRET_LITERAL" },
  })
  .meta({
    anyOf: [
      { type: "string", pattern: "^(env|file|command|age):|^-----BEGIN AGE" },
      {
        type: "object",
        properties: {
          env: { type: "string", description: "An environment variable of the bastion." },
          file: { type: "string", description: "A file on the bastion that others cannot read." },
          command: { type: "string", description: "A command on the bastion that prints the secret." },
        },
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
        examples: [{ env: "N2_PASSWORD" }, { file: "/root/n2" }, { command: "pass show n2" }],
      },
    ],
  })
  .transform((value) => parseReference(value) ?? { env: "" });
