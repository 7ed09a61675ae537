import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { readText } from "#base/file.ts";
import type { Daemon } from "./daemon.ts";

/** The files of a daemon's certificate, its key and the cluster's root; names and defaults as in the kcore documentation. */
export const TlsFiles = (role: "controller" | "node") =>
  z
    .object({
      caFile: z.string().default("/etc/kcore/certs/ca.crt"),
      certFile: z.string().default(`/etc/kcore/certs/${role}.crt`),
      keyFile: z.string().default(`/etc/kcore/certs/${role}.key`),
    })
    .prefault({});

/**
 * Reads a daemon's configuration file, and logs the keys that the schema does not know.
 * @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID; errors of `parse`
 */
export async function readDaemonConfig<Schema extends z.ZodObject>(
  { configFile: file, parse, log }: Pick<Daemon, "configFile" | "parse"> & Partial<Pick<Daemon, "log">>,
  schema: Schema,
): Promise<z.output<Schema>> {
  const value = parse(await readText(file)) ?? {};
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    throw new KcoreError(
      parsed.error.issues.map((issue) => ({
        code: "CONFIG_INVALID" as const,
        message: `${file}: ${issue.path.join(".") || "the file"}: ${issue.message}`,
      })),
    );
  }
  const ignored = Object.keys(value).filter((key) => !Object.hasOwn(schema.shape, key));
  if (ignored.length > 0) log?.warn("configuration keys without a meaning here", { ignored });
  return parsed.data;
}
