import { Command } from "commander";
import { addNodeChanges } from "./node-changes.ts";

/** `kcore node …`. */
export function nodeCommand(): Command {
  const node = new Command("node").description("The cluster's nodes");
  addNodeChanges(node);
  return node;
}
