import type { CommonFlags } from "../options.ts";

/** What `kcore runs export` writes. */
export const exportFormats = ["ndjson", "json", "text", "markdown", "junit", "html", "cast", "tar"] as const;

export type ExportFormat = (typeof exportFormats)[number];

export interface ExportFlags extends CommonFlags {
  readonly format?: ExportFormat;
  readonly file?: string;
}
