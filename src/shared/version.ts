/** The version of the interface (see docs/design/rules.md#version). */
export const apiVersion = '1.0.0'
