import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { defined } from "#optional/defined.ts";

/**
 * Bytes that a step needs on the node; sent only when the node lacks them, checked by SHA-256 there. In an `sh` text
 * `${blob}` becomes the quoted path of the bytes on the node.
 */
export class Blob {
  /** Lower-case hex SHA-256 of the bytes; the blob's name on the node unless it is sensitive. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Sensitive bytes get a random name on the node, so that not even their hash is seen. */
  readonly sensitive: boolean;
  /** Reads the bytes; called only if the node asks for them. */
  readonly read: () => Promise<Uint8Array>;
  /** The bytes, when they are in memory already. */
  readonly bytes: Uint8Array | undefined;
  /** What views call it while it travels; none for what is sensitive. */
  readonly label: string | undefined;
  /** What the node gets: the bytes, or a text of sh that assigns them to `b_text`. */
  readonly form: "bytes" | "assignment";

  constructor(
    fields: Pick<Blob, "sha256" | "size" | "sensitive" | "read"> & Partial<Pick<Blob, "bytes" | "form" | "label">>,
  ) {
    this.sha256 = fields.sha256;
    this.size = fields.size;
    this.sensitive = fields.sensitive;
    this.read = fields.read;
    this.bytes = fields.bytes;
    this.form = fields.form ?? "bytes";
    this.label = fields.sensitive ? undefined : fields.label;
  }
}

/** A blob of bytes (or UTF-8 text) that are in memory already. */
export function blobOf(content: string | Uint8Array, { sensitive = false }: { sensitive?: boolean } = {}): Blob {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return new Blob({ sha256, size: bytes.length, read: () => Promise.resolve(bytes), sensitive, bytes });
}

/**
 * A blob of a file whose hash and size are known already, so that a large one is neither read nor hashed until a node
 * asks for it. Nodes that ask at the same time share the bytes.
 */
export function fileBlob(
  { file, sha256, size }: { file: string; sha256: string; size: number },
  label = basename(file),
): Blob {
  return new Blob({ sha256, size, sensitive: false, read: () => readShared(file, sha256), label });
}

const shared = new Map<string, WeakRef<Promise<Uint8Array>>>();

function readShared(file: string, sha256: string): Promise<Uint8Array> {
  const known = shared.get(sha256)?.deref();
  if (known) return known;
  const bytes: Promise<Uint8Array> = readFile(file);
  shared.set(sha256, new WeakRef(bytes));
  bytes.catch(() => shared.delete(sha256));
  return bytes;
}

/** The same bytes as a text of sh that assigns them to `b_text`; they hold no NUL. */
export function asAssignment({ sha256, size, sensitive, read, bytes, label }: Blob): Blob {
  return new Blob({ sha256, size, sensitive, read, form: "assignment", ...defined({ bytes, label }) });
}

/** The same bytes, not to be seen. */
export function hidden({ sha256, size, read }: Blob): Blob {
  return new Blob({ sha256, size, read, sensitive: true });
}
