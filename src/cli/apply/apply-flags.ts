import type { InstallFlags } from "../install/install-node.ts";
import type { ClusterFlags } from "../options.ts";

/** Flags of `kcore apply` and `kcore diff`; `result`: how they print what came of it. */
export type ApplyFlags = ClusterFlags &
  InstallFlags & { readonly bundle?: string; readonly result: "table" | "json" | "yaml" };
