import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { ifThere, placeFile } from "#base/file.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { Bundle } from "#rollout/spec.ts";
import type { ApiClient } from "./client.ts";
import { formatEndpoint } from "./endpoint.ts";

/** The fields that identify a bundle's bytes. */
export type BundleId = Pick<Bundle, "sha256" | "size">;

/** A file with a bundle's bytes from the offset `start` to the file's end. */
export interface BundleSource {
  readonly bundle: BundleId;
  readonly file: string;
  readonly start: number;
}

export interface BundleTransferOptions {
  readonly signal?: AbortSignal;
  /** Called repeatedly with the number of bytes that the receiver has. */
  readonly onProgress?: (bytes: number) => void;
}

/** The limits of a piece in bytes, except the last piece; the schema BundlePiece has room for the largest. */
const pieceLimits = { smallest: 16 * 1024, largest: 512 * 1024 } as const;
/** A piece that takes fewer milliseconds than `short` doubles the next piece, more than `long` halves it: a call must stay far below its limit. */
const pieceMs = { short: 300, long: 1_500 } as const;

/** The time limit of a transfer in milliseconds. When it is over, the transfer may continue with another controller. */
export function longestTransferMs(bytes: number): number {
  // An integer, because AbortSignal.timeout takes no fraction.
  return 60_000 + Math.ceil((bytes / (32 * 1024)) * 1000);
}

/**
 * Sends a bundle to a controller, except the bytes that the controller has already. @throws KcoreError as ApiClient.call does;
 * UPDATE_BUNDLE_INVALID if the file is too short or has another hash; NodeJS.ErrnoException if it cannot be read
 */
export async function uploadBundle(
  client: ApiClient,
  { bundle: { sha256, size }, file, start }: BundleSource,
  { signal, onProgress }: BundleTransferOptions = {},
): Promise<void> {
  const call = { id: sha256, ...(signal && { signal }) };
  const { bundles } = await client.call("listBundles", {}, signal ? { signal } : {});
  let { held = 0, whole = false } = bundles.find((bundle) => bundle.sha256 === sha256) ?? {};
  if (whole) return onProgress?.(size);
  const source = await open(file);
  try {
    let length: number = pieceLimits.smallest * 4;
    let hasRestarted = false;
    while (!whole) {
      onProgress?.(held);
      const data = await readPiece(source, start + held, Math.min(length, size - held));
      if (data.length === 0 && held < size) throw invalid(`${file} is shorter than the bundle ${sha256}`);
      const began = performance.now();
      const before = held;
      ({ held, whole } = await client.call("putBundle", { data: data.toString("base64"), offset: held, size }, call));
      const took = performance.now() - began;
      if (took < pieceMs.short) length = Math.min(length * 2, pieceLimits.largest);
      if (took > pieceMs.long) length = Math.max(length / 2, pieceLimits.smallest);
      // The controller has all bytes, found a wrong hash and dropped them: its earlier part may have been damaged. Begin anew, once.
      if (whole || before + data.length < size || held > before) continue;
      if (hasRestarted) throw invalid(`${file} does not hold the bundle ${sha256}`);
      hasRestarted = true;
    }
    onProgress?.(size);
  } finally {
    await source.close();
  }
}

/**
 * Fetches a bundle from a controller into the file `target`, which appears only with the right hash. Until then the received bytes are
 * in `target.part`, where the next call continues. A complete target is left alone.
 * @throws KcoreError as ApiClient.open does; API_UNREACHABLE if the answer breaks off; UPDATE_BUNDLE_INVALID for another hash;
 * UPDATE_BUNDLE_NO_ROOM if the disk refuses the bytes; NodeJS.ErrnoException if `target.part` cannot be opened
 */
export async function fetchBundle(
  client: ApiClient,
  { sha256, size }: BundleId,
  target: string,
  options: BundleTransferOptions = {},
): Promise<void> {
  const { onProgress } = options;
  if (await isWholeAt(target, { sha256, size })) return onProgress?.(size);
  const part = `${target}.part`;
  const file = await open(part, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    const { hash, held } = await hashHeld(file, size);
    onProgress?.(held);
    const write = (chunk: Buffer, at: number): Promise<void> => orNoRoom(target, writeAll(file, chunk, at));
    await receive(client, { write, hash, held, sha256, size }, options);
    if (hash.digest("hex") !== sha256) {
      await file.truncate(0);
      throw invalid(`the data of controller ${formatEndpoint(client.endpoint)} are not the bundle ${sha256}`);
    }
  } finally {
    await file.close();
  }
  await orNoRoom(target, placeFile(part, target));
}

async function readPiece(source: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await source.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

async function isWholeAt(path: string, { sha256, size }: BundleId): Promise<boolean> {
  const file = await ifThere(open(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  try {
    if (file === undefined || (await file.stat()).size !== size) return false;
    return (await hashHeld(file, size)).hash.digest("hex") === sha256;
  } finally {
    await file?.close();
  }
}

/** Hashes and counts the bytes of a file, which is emptied first if it is larger than `size`. The caller adds later bytes to the hash. */
async function hashHeld(file: FileHandle, size: number): Promise<{ readonly hash: Hash; readonly held: number }> {
  const hash = createHash("sha256");
  if ((await file.stat()).size > size) await file.truncate(0);
  let held = 0;
  for (;;) {
    const bytes = await readPiece(file, held, pieceLimits.largest);
    if (bytes.length === 0) return { hash, held };
    hash.update(bytes);
    held += bytes.length;
  }
}

async function receive(
  client: ApiClient,
  {
    write,
    hash,
    held,
    sha256,
    size,
  }: BundleId & {
    readonly write: (chunk: Buffer, at: number) => Promise<void>;
    readonly hash: Hash;
    readonly held: number;
  },
  { signal, onProgress }: BundleTransferOptions,
): Promise<void> {
  if (held === size) return;
  const where = formatEndpoint(client.endpoint);
  const limits = [signal, AbortSignal.timeout(longestTransferMs(size - held))].filter((limit) => limit !== undefined);
  const response = await client.open("bundle", {}, { id: `${sha256}@${held}`, signal: AbortSignal.any(limits) });
  let at = held;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (at + chunk.length > size) throw invalid(`controller ${where} gave more than the bundle ${sha256}`);
      await write(chunk, at);
      hash.update(chunk);
      at += chunk.length;
      onProgress?.(at);
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof KcoreError) throw error;
    throw brokenOff(where, at, size, error);
  }
  if (at < size) throw brokenOff(where, at, size);
}

async function writeAll(file: FileHandle, chunk: Buffer, position: number): Promise<void> {
  for (let done = 0; done < chunk.length;)
    done += (await file.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
}

/** Rejects with UPDATE_BUNDLE_NO_ROOM if the disk fails, so that the controller is not taken for the cause. */
async function orNoRoom(target: string, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new KcoreError(
      {
        code: "UPDATE_BUNDLE_NO_ROOM",
        message: `the bundle cannot be written to ${dirname(target)}: ${reason}`,
        hint: "make room on the disk (df -h); then the transfer goes on where it was",
      },
      { cause, exitCode: exitCodes.failed },
    );
  }
}

function brokenOff(where: string, at: number, size: number, cause?: unknown): KcoreError {
  return new KcoreError(
    {
      code: "API_UNREACHABLE",
      message: `controller ${where} broke off after ${at} of ${size} bytes of a bundle`,
      hint: "try again: the transfer goes on from there",
    },
    { cause, exitCode: exitCodes.unreachable },
  );
}

function invalid(message: string): KcoreError {
  return new KcoreError(
    { code: "UPDATE_BUNDLE_INVALID", message, hint: "look at both sides: kcore update bundle show FILE, kcore health" },
    { exitCode: exitCodes.failed },
  );
}
