import { type Asker, Blob, fileBlob } from "./blob.ts";
import type { Secret } from "./secret.ts";

/** A content by its URL. */
export interface RemoteContent {
  readonly url: string | Secret;
  readonly sha256: string;
  /** What views call it. */
  readonly label: string;
  /** For the URL's own server. */
  readonly headers: Readonly<Record<string, string | Secret>>;
  /** Absolute path of the CA to trust; absent: those of this machine's Node. */
  readonly caFile?: string | undefined;
  /** A proxy; absent: what the environment names. */
  readonly proxy?: string | undefined;
}

/**
 * Brings a content to this machine, unless it is here, and gives the file.
 * @throws KcoreError DOWNLOAD_FAILED, DOWNLOAD_DIFFERS
 */
export type Fetch = (
  content: RemoteContent,
  asker: Asker,
) => Promise<{ readonly file: string; readonly sha256: string; readonly size: number }>;

/** What a node that asks for a content is given beside it, under this name, when there is none: a line with the code, then the text. */
export function refusalName(name: string): string {
  return `${name}.refused`;
}

/** A blob of a content that is fetched when the first node asks for it. */
export function remoteBlob(content: RemoteContent, fetch: Fetch): Blob {
  const { sha256, label } = content;
  const here = async (asker: Asker): Promise<Blob> => fileBlob(await fetch(content, asker), label);
  return new Blob({
    sha256,
    size: 0,
    sensitive: false,
    label,
    fetch: here,
    read: async () => (await here({ signal: new AbortController().signal, tell: () => undefined })).read(),
  });
}
