/** Time limit of a single wait, in milliseconds. It is shorter than the limit in .mocharc.json, whose message would name no wait. */
export const hangLimit = 300_000;
