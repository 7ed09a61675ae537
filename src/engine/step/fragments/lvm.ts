import { sh } from "../sh.ts";

/** LVM's programs warn of every inherited open file, such as the runner's (lvm(8), Environment variables). */
export const quietLvm = sh`export LVM_SUPPRESS_FD_WARNINGS=1`;
