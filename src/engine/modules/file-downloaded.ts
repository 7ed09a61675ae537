import { basename } from "node:path";
import { z } from "zod";
import { type Blob, blobName } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, FileMode, HttpUrl, Sha256, TextOrSecret, UserName } from "../step/fields.ts";
import { fetchTo, foreseeDownload, type Download } from "../step/fragments/download.ts";
import { effectsOfFile, fileRefusals, foreseeFile, probeFileAt, wantOwnership } from "../step/fragments/files.ts";
import type { NodeResource } from "../step/effects.ts";
import { refusalName } from "../step/remote.ts";
import { Secret } from "../step/secret.ts";
import { sh, type Sh } from "../step/sh.ts";

function isOneLine(text: string | Secret): boolean {
  return !/[\0\r\n]/.test(text instanceof Secret ? text.reveal() : text);
}

/**
 * ```yaml
 * file.downloaded:
 *   path: /usr/local/bin/example
 *   url: https://downloads.example.org/example-1.2.3
 *   sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *   mode: "0755"
 *   via: node # bastion: for nodes that do not reach it
 * ```
 * The node fetches the file itself, by curl, GNU wget or BusyBox wget; the next run resumes a download that was cut off (not with `runAs`). With `via: bastion`
 * the node needs only SSH: the bastion fetches the content once for all nodes, when the first node lacks it. The bastion keeps the content (2 GB
 * at most) in `~/.kcore/cache/downloads` for 30 days after its last use. Nodes that lack it get it from the bastion, with `--feed nodes` also
 * from one another. With `via: bastion` a dry run asks no server. A file of the project is `file.managed` with `source:`.
 *
 * The file is replaced as a whole, and only if the hash is right; a file with the right hash costs no download. If the node fetches, headers
 * and a secret URL need curl, which reads them from its stdin. Headers are not sent to the target of a redirect. The step key
 * `timeout` limits the node's work; a download without a byte for five minutes has failed.
 */
export const fileDownloaded = defineModule({
  name: "file.downloaded",
  summary: "Keeps a file that the node, or the bastion for it, fetches by its URL, pinned by its hash.",
  alsoKnownAs: ["get_url", "files.download", "file.managed", "curl", "wget"],
  args: z.strictObject({
    path: AbsolutePath.describe("The file on the node."),
    url: z
      .union([HttpUrl, z.instanceof(Secret).refine(isOneLine, "must be one line")])
      .describe("Where the file is: http or https."),
    sha256: Sha256.describe("The SHA-256 that the file must have."),
    mode: FileMode.optional().describe("Mode; else kept, 0644 for a new file."),
    owner: UserName.optional().describe("Owner; else kept, root for a new file."),
    group: UserName.optional().describe("Group; else kept, root for a new file."),
    makeDirs: z.boolean().default(false).describe("Make the missing folders above path."),
    headers: z
      .record(
        z.string().regex(/^[A-Za-z0-9-]+$/, "must be a header's name"),
        TextOrSecret.refine(isOneLine, "must be one line"),
      )
      .default({})
      .describe("Headers of the request; they may be secret."),
    via: z
      .enum(["node", "bastion"])
      .default("node")
      .describe("The machine that fetches the file: the node, or the bastion, which sends it to nodes that lack it."),
    caFile: AbsolutePath.optional().describe("The CA to trust, a file on the machine that fetches."),
    proxy: HttpUrl.optional().describe(
      "A proxy; else what the environment of the machine that fetches names (http_proxy, https_proxy).",
    ),
  }),
  refusals: ["DOWNLOAD_DIFFERS", "DOWNLOAD_FAILED", "TOOL_MISSING", ...fileRefusals],
  step: ({ path, mode, owner, group, makeDirs, via, ...download }, context) => {
    const target = { path, owner, group, makeDirs };
    const { writes, reads } = effectsOfFile(target);
    const label = context.sensitive ? "contents" : basename(path);
    const wanted = `sha256:${download.sha256}`;
    const transfer = via === "node" ? byNode(download) : byBastion(context.remote({ ...download, label }));
    return {
      ...(/\/s?bin\//.test(path) && { brings: true }),
      effects: { writes, reads: [...reads, ...transfer.reads] },
      want: { kind: "file", content: wanted, ...wantOwnership({ mode, owner, group }) },
      probe: probeFileAt(path, { owner, group }),
      guard: sh`guard_file ${path}`,
      keep: sh`keep_path ${path}`,
      foresee: sh`${foreseeFile(target)}
[ "$(had content)" = ${wanted} ] || {
${transfer.foresee}
}`,
      ...(transfer.blob && {
        asks: sh`[ "$(had kind):$(had content)" = ${`file:${wanted}`} ] || echo ${`${blobName(transfer.blob)} 0`}`,
        offers: [transfer.blob],
      }),
      // A copy of the opened file is hashed and used: the folder's owner could replace the file by a link to another user's file.
      apply: sh`part=$K_TMP/same
[ "$(had kind):$(had content)" = ${`file:${wanted}`} ] &&
  (umask 077; open_file ${path} && cat <&9 >"$part") && sum=$(sha256sum <"$part") && [ "\${sum%% *}" = ${download.sha256} ] || {
parent_of ${path} ${makeDirs ? 1 : 0} ${owner ?? ""}
${transfer.fetch}
}
put_file "$part" ${path} ${mode ?? "-"} ${owner ?? "-"} ${group ?? "-"} || exit 1
rm -f "$part" "$K_TMP/same"`,
      timeout: 7200,
      stall: 300,
    };
  },
});

/** The texts that differ between a fetch by the node and one by the bastion. */
interface FetchTexts {
  readonly reads: readonly NodeResource[];
  readonly foresee: Sh;
  /** The blob that a node without the content requests from the bastion. */
  readonly blob?: Blob;
  /** Sets `part` to a file with the content, or refuses. */
  readonly fetch: Sh;
}

function byNode(download: Download): FetchTexts {
  return {
    reads: ["curl", "wget"].map((name) => ({ is: "program", name })),
    foresee: foreseeDownload(download),
    fetch: fetchTo(download),
  };
}

function byBastion(blob: Blob): FetchTexts {
  const name = blobName(blob);
  return {
    reads: [],
    foresee: sh`:`,
    blob,
    fetch: sh`part=$K_RUN/blobs/${name} why=$K_RUN/blobs/${refusalName(name)}
if [ -e "$why" ]; then
  read -r code <"$why"
  text=$(sed 1d "$why")
  # A resumed run asks the bastion again.
  rm -f "$part" "$why"
  case $code in
    DOWNLOAD_DIFFERS) refuse DOWNLOAD_DIFFERS "$text" ;;
    *) refuse DOWNLOAD_FAILED "$text" ;;
  esac
fi
[ -e "$part" ] || {
  echo "the file changed between the look and the change; run again" >&2
  exit 1
}`,
  };
}
