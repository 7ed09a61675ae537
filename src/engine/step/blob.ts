import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/** A node's request for a content that the bastion may still have to fetch. */
export interface FetchRequest {
  /** Aborted when the node's session is stopped. */
  readonly signal: AbortSignal;
  /** Called with the bytes fetched so far while a fetch runs; `total` if the server reports the size. */
  readonly onProgress: (progress: { readonly got: number; readonly total?: number }) => void;
}

/**
 * Bytes that a step needs on the node; sent only if the node asks for them. In an `sh` text `${blob}` becomes the quoted
 * path of the bytes on the node.
 */
export class Blob {
  /** Lower-case hex SHA-256 of the bytes; the blob's name on the node begins with it, unless the blob is sensitive. */
  readonly sha256: string;
  /** In bytes; 0 for a blob with `fetch`, whose size is not known yet. */
  readonly size: number;
  /** Sensitive bytes get a random name on the node, so that not even their hash is seen. */
  readonly sensitive: boolean;
  /** Reads the bytes; called only if the node asks for the blob. */
  readonly read: () => Promise<Uint8Array>;
  /**
   * For a content that the bastion may not have yet: fetches the content, and resolves with the blob to send. If it
   * rejects, the step is refused.
   */
  readonly fetch: ((request: FetchRequest) => Promise<Blob>) | undefined;
  /** The bytes, when they are in memory already. */
  readonly bytes: Uint8Array | undefined;
  /** The name that views show while the blob is sent; none for a sensitive blob. */
  readonly label: string | undefined;
  /** The form that the node gets: the bytes, or a text of sh that assigns them to `b_text`. */
  readonly form: "bytes" | "assignment";

  constructor(
    fields: Pick<Blob, "sha256" | "size" | "sensitive" | "read"> &
      Partial<Pick<Blob, "bytes" | "fetch" | "form" | "label">>,
  ) {
    this.sha256 = fields.sha256;
    this.size = fields.size;
    this.sensitive = fields.sensitive;
    this.read = fields.read;
    this.fetch = fields.fetch;
    this.bytes = fields.bytes;
    this.form = fields.form ?? "bytes";
    this.label = fields.sensitive ? undefined : fields.label;
  }
}

/** A blob of bytes in memory; a text becomes its UTF-8 bytes. */
export function blobOf(content: string | Uint8Array, { sensitive = false }: { sensitive?: boolean } = {}): Blob {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return new Blob({ sha256, size: bytes.length, read: () => Promise.resolve(bytes), sensitive, bytes });
}

/** The name on the node of a blob that is not sensitive. */
export function blobName({ sha256 }: Blob): string {
  // The `.b` distinguishes the bytes from the same content in the form `assignment`.
  return `${sha256}.b`;
}

/**
 * A blob of a file whose hash and size are known already: the file is read and hashed only when a node asks for it.
 * Nodes that ask at the same time share the bytes. Reading throws FILE_UNREADABLE for a missing file or another hash.
 */
export function fileBlob(
  { file, sha256, size }: { file: string; sha256: string; size: number },
  label = basename(file),
): Blob {
  return new Blob({ sha256, size, sensitive: false, read: () => readShared(file, sha256), label });
}

const makers = new Map<string, () => Promise<void>>();

/**
 * Registers `make` for a file of a cache: `make` runs when a node asks for the file and the file is missing or has another
 * hash. The registry is a global of the run's process, since an action can pass only plain values to a step.
 */
export function registerMaker(file: string, make: () => Promise<void>): void {
  makers.set(file, make);
}

const shared = new Map<string, WeakRef<Promise<Uint8Array>>>();

function readShared(file: string, sha256: string): Promise<Uint8Array> {
  const known = shared.get(sha256)?.deref();
  if (known) return known;
  const bytes: Promise<Uint8Array> = readVerified(file, sha256);
  shared.set(sha256, new WeakRef(bytes));
  bytes.catch(() => shared.delete(sha256));
  return bytes;
}

async function readVerified(file: string, sha256: string): Promise<Uint8Array> {
  try {
    return await readOnce(file, sha256);
  } catch (error) {
    const make = makers.get(file);
    if (!make) throw error;
    await make();
    return readOnce(file, sha256);
  }
}

async function readOnce(file: string, sha256: string): Promise<Uint8Array> {
  const unreadable = (message: string, cause?: unknown): KcoreError =>
    new KcoreError({ code: "FILE_UNREADABLE", message, hint: "run again" }, { cause });
  const found = await readHashed(file).catch((cause: unknown) => {
    throw unreadable(`cannot read ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  });
  if (found.sha256 !== sha256) throw unreadable(`${file} is not what it was: its SHA-256 is another one`);
  return found.bytes;
}

/** The bytes that are read and hashed at once, before the event loop gets its turn. */
const chunkSize = 4 << 20;

async function readHashed(file: string): Promise<{ readonly bytes: Uint8Array; readonly sha256: string }> {
  const handle = await open(file);
  try {
    const bytes = Buffer.allocUnsafe((await handle.stat()).size);
    const hash = createHash("sha256");
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, Math.min(chunkSize, bytes.length - length), length);
      if (bytesRead === 0) break;
      hash.update(bytes.subarray(length, (length += bytesRead)));
    }
    return { bytes: bytes.subarray(0, length), sha256: hash.digest("hex") };
  } finally {
    await handle.close();
  }
}

/** The blob in the form `assignment`; its bytes must contain no NUL. */
export function asAssignment({ sha256, size, sensitive, read, bytes, label }: Blob): Blob {
  return new Blob({ sha256, size, sensitive, read, form: "assignment", ...omitUndefined({ bytes, label }) });
}

export function asSensitive({ sha256, size, read }: Blob): Blob {
  return new Blob({ sha256, size, read, sensitive: true });
}
