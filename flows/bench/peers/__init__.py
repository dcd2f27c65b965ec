"""The suite `peers`. What the processes of contestants import (`contest`, `system`, `linear`, `others`) stays light."""
