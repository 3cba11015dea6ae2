#ifdef __cplusplus
}
#endif

#endif /* LEAFPRESS_H */
