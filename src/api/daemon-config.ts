import { readFile } from "node:fs/promises";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";

/** Where a daemon's certificate, key and the cluster's root lie; as in the kcore documentation. */
export const TlsFiles = (role: "controller" | "node") =>
  z
    .object({
      caFile: z.string().default("/etc/kcore/certs/ca.crt"),
      certFile: z.string().default(`/etc/kcore/certs/${role}.crt`),
      keyFile: z.string().default(`/etc/kcore/certs/${role}.key`),
    })
    .prefault({});

/**
 * Reads a daemon's configuration file. Keys that the schema does not know are returned, so that the daemon can say that it ignores them.
 * @throws KcoreError FILE_UNREADABLE, CONFIG_INVALID, and what `parse` throws
 */
export async function readDaemonConfig<Schema extends z.ZodObject>({
  file,
  schema,
  parse,
}: {
  readonly file: string;
  readonly schema: Schema;
  readonly parse: (text: string) => unknown;
}): Promise<{ readonly config: z.output<Schema>; readonly ignored: readonly string[] }> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `${file} cannot be read: ${error.message}` },
      { cause: error },
    );
  });
  const value = parse(text) ?? {};
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    throw new KcoreError(
      parsed.error.issues.map((issue) => ({
        code: "CONFIG_INVALID" as const,
        message: `${file}: ${issue.path.join(".") || "the file"}: ${issue.message}`,
      })),
    );
  }
  const known = new Set(Object.keys(schema.shape));
  return { config: parsed.data, ignored: Object.keys(value).filter((key) => !known.has(key)) };
}
