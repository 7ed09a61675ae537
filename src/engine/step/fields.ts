import { z } from "zod";
import { parseDuration, parseSize } from "#base/units.ts";
import { Secret } from "./secret.ts";

// Argument types that several modules share. Each refuses values that could not work on any node.

/** An absolute, normalised path: no `..`, no empty part, no NUL, no newline. */
export const AbsolutePath = z
  .string()
  .max(4096)
  .refine((path) => path.startsWith("/"), "must be an absolute path")
  .refine((path) => !/[\0\n]/.test(path), "must not hold a NUL or a line break")
  .refine(
    (path) =>
      path === "/" ||
      !path
        .slice(1)
        .split("/")
        .some((part) => part === "" || part === "." || part === ".."),
    {
      message: "must be normalised: no “..”, “.”, “//” or final “/”",
    },
  );

/** A file mode as text of three or four octal digits ("0640"); a number is refused, since YAML drops its leading 0. */
export const FileMode = z.string().regex(/^0?[0-7]{3}$|^[1-7][0-7]{3}$/, 'must be octal in quotes, such as "0640"');

export function modeNumber(mode: string): number {
  return Number.parseInt(mode, 8);
}

/** Whether the text is the number of a user or group, not a name. */
export function isAccountId(name: string | undefined): boolean {
  return name !== undefined && /^\d+$/.test(name);
}

/** A user or group name that useradd(8) and BusyBox adduser accept, or a numeric id. */
export const UserName = z
  .string()
  .regex(/^[a-z_][a-z0-9_-]{0,31}\$?$|^\d{1,10}$/, "must be a user or group name or a number");

/** A systemd unit's name; “.service” is added to a name without a unit type's suffix. */
export const UnitName = z
  .string()
  .regex(/^[A-Za-z0-9:_.\\@-]{1,255}$/, "must be a unit's name")
  .transform((name) =>
    /\.(service|socket|target|timer|mount|path|slice|automount|swap|scope|device)$/.test(name)
      ? name
      : `${name}.service`,
  );

/** A URL of http or https, in printable ASCII, without user and password. */
export const HttpUrl = z
  .string()
  .regex(
    /^https?:\/\/(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?(\/[!-~]*)?$/,
    "must be a URL: http(s)://host[:port][/path]",
  );

/** A SHA-256 in lower-case hex, as sha256sum(1) prints it. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256: 64 hex digits");

/** A text that may be a {@link Secret}, as the roster's `secrets` are. */
export const TextOrSecret = z.union([z.string(), z.instanceof(Secret)]);

/** A size in bytes: a number, or text with a unit: `512M`, `10GiB`, `1T` (powers of 1024). */
export const ByteSize = z.union([
  z.number().int().nonnegative(),
  z
    .string()
    .regex(/^\d+(\.\d+)?\s*([KMGTPkmgtp]([Ii]?[Bb])?|[Bb])?$/, "must be a size such as 512M or 10GiB")
    .transform((text) => parseSize(text) as number),
]);

/** A duration in seconds: a number, or text with a unit: `30s`, `5m`, `1h`, `500ms`. */
export const Duration = z.union([
  z.number().nonnegative(),
  z
    .string()
    .regex(/^\d+(\.\d+)?(ms|s|m|h)$/, "must be a duration such as 30s, 5m or 1h")
    .transform((text) => parseDuration(text) as number),
]);
