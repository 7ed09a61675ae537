import type { Readable } from "node:stream";
import type { z } from "zod";

/** Longer lines are no protocol of ours. */
const longest = 1024 * 1024;

/**
 * The lines of JSON of a stream, each as the schema reads it; lines of kinds that this version does not know are left
 * out. Throws the stream's errors, and an Error for a line that is too long or no JSON.
 */
export async function* readLines<Schema extends z.ZodType>(
  stream: Readable,
  schema: Schema,
): AsyncGenerator<z.output<Schema>> {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > longest) throw new Error("a line longer than 1 MiB");
    for (const line of lines) {
      const parsed = schema.safeParse(JSON.parse(line));
      if (parsed.success) yield parsed.data;
    }
  }
}
